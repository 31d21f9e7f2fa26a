//! What agents are at, asked of the supervisor and said in a few words.

use std::collections::HashMap;

use crate::client::{self, Client, ClientError};
use crate::record::RecordId;
use crate::store::Paths;
use crate::turn::{Moment, View};

/// What the supervisor knows each live agent is at: one question, whatever their number, and no file of any of them.
#[derive(Debug, Default)]
pub(super) struct Turned(HashMap<String, View>);

impl Turned {
    /// What the supervisor of this store says; nothing without one.
    pub(super) fn ask(paths: &Paths) -> Self {
        let Ok(client::Found::Running(Some(said))) = client::find(&paths.files()) else {
            return Self::default();
        };
        Client::connect(&said).and_then(|mut client| Self::of(&mut client)).unwrap_or_default()
    }

    /// What this one says.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn of(client: &mut Client) -> Result<Self, ClientError> {
        Ok(Self(client.turns()?.into_iter().map(|one| (one.record, one.turn)).collect()))
    }

    /// Of a record; `None` where nobody says anything of it.
    pub(super) fn get(&self, record: RecordId) -> Option<&View> {
        self.0.get(&record.to_string())
    }
}

/// State, source and age: `working (hook, 12 s)`; `-` where nothing is known.
pub(super) fn words(view: Option<&View>, now: Moment) -> String {
    let Some(view) = view.filter(|view| view.source.is_some()) else { return "-".to_owned() };
    let age = view.since.map(|since| format!(", {}", age(since, now))).unwrap_or_default();
    format!("{} ({}{age})", view.shown_state(), view.shown_source())
}

/// How old, in the largest unit that fits.
pub(super) fn age(at: Moment, now: Moment) -> String {
    let seconds = at.age(now).as_secs();
    let (count, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "min"),
        3600..86_400 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{count} {unit}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::turn::{Observation, Source, State, Turns};

    #[test]
    fn a_state_is_never_said_without_its_source_and_age() {
        let at = Moment::from_millis(1_000_000);
        assert_eq!(words(None, at), "-");
        assert_eq!(words(Some(&View::unknown()), at), "-");
        let mut turns = Turns::new("one");
        turns.observe(&Observation::of(Source::Registry, Some(State::Working), at, "busy"));
        let now = at.after(Duration::from_secs(90));
        assert_eq!(words(Some(&turns.view(now)), now), "working (registry, 1 min)");
    }
}
