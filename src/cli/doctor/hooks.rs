//! The hooks in the providers' settings, each there once.

use std::collections::BTreeMap;

use serde::Serialize;

use super::finding::Finding;
use crate::cli::print::shown;
use crate::cli::setup::diff::shown_path;
use crate::hooks::settings::{Home, PROVIDERS};

/// Entries of ours in one provider's settings.
#[derive(Debug, Serialize)]
pub(super) struct Entered {
    provider: &'static str,
    path: String,
    /// Their events, as they stand in the file.
    events: Vec<String>,
}

impl Entered {
    /// One line of text.
    pub(super) fn line(&self) -> String {
        let events: Vec<String> = self.events.iter().map(|event| shown(event.as_bytes())).collect();
        format!("{} (hooks of {}): {}", self.path, self.provider, events.join(" "))
    }
}

/// Our entries in the settings of every provider that was used here: what is to be said of them, and where they are.
pub(super) fn check() -> (Vec<Finding>, Vec<Entered>) {
    let homes = PROVIDERS.into_iter().filter_map(|provider| {
        let home = Home::of(provider, |name| std::env::var_os(name))?;
        home.is_there().then_some((provider.name(), home))
    });
    let mut findings = Vec::new();
    let mut entered = Vec::new();
    for (provider, home) in homes {
        let path = shown_path(&home.file);
        match home.entries() {
            Ok(entries) if entries.is_empty() => {}
            Ok(entries) => {
                findings.push(judge(provider, &path, &entries));
                let events = entries.into_iter().map(|(event, _)| event).collect();
                entered.push(Entered { provider, path, events });
            }
            Err(wrong) => {
                let why = format!("{provider}: {}", shown(wrong.to_string().as_bytes()));
                findings.push(Finding::note("hooks", why));
            }
        }
    }
    (findings, entered)
}

fn judge(provider: &str, file: &str, entries: &[(String, String)]) -> Finding {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for (event, _) in entries {
        *count.entry(event).or_default() += 1;
    }
    let twice: Vec<String> = count
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(event, times)| format!("{} {times} times", shown(event.as_bytes())))
        .collect();
    if twice.is_empty() {
        return Finding::good("hooks", format!("{provider}: {} events in {file}", count.len()));
    }
    Finding::bad("hooks", format!("{provider}: {file} calls ait for {}", twice.join(", ")))
        .hint("`ait setup` leaves each of them once")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn an_event_that_is_there_twice_is_counted() {
        let entry = |event: &str| (event.to_owned(), "ait hook".to_owned());
        let once = judge("claude", "f", &[entry("Stop"), entry("SessionStart")]);
        assert_eq!((once.level, once.what.as_str()), (Level::Good, "claude: 2 events in f"));
        let twice =
            judge("claude", "f", &[entry("Stop"), entry("SessionStart"), entry("Stop"), entry("Stop")]);
        assert_eq!((twice.level, twice.what.as_str()), (Level::Bad, "claude: f calls ait for Stop 3 times"));
    }
}
