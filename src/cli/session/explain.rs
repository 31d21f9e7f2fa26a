//! `ait explain`: what a session's agent is at, and why: each signal, when it came, and what became of it.

use clap::Args as ClapArgs;
use serde_json::json;

use super::Meant;
use super::address::Found;
use super::envelope::{self, Answer, Trouble};
use super::view::now;
use crate::cli::turned::{Turned, age};
use crate::cli::{Exit, Failure, print, table};
use crate::store::{Paths, turns};
use crate::turn::{Evidence, Moment, Verdict, View};

/// Show what an agent is at and why: each signal, when it came, which one counts.
///
/// The strongest source is first. What nobody renewed in time counts no more: without any evidence the state is unknown, `-`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  ait explain review")]
pub(crate) struct Args {
    #[command(flatten)]
    one: Meant,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("explain", &args.one.given, || explain(&args))
}

fn explain(args: &Args) -> Result<Answer, Trouble> {
    let (store, found) = args.one.found()?;
    let (view, told_by) = look(store.paths(), &found);
    let record = &found.record;
    let data = json!({
        "id": record.id.to_string(),
        "provider": record.agent_kind,
        "runtime_id": record.runtime(),
        "told_by": told_by,
        "turn": view,
    });
    let head = format!("{}  {}\n", record.id, print::shown(record.agent_kind.as_bytes()));
    Answer::new(data, head + &text(&view, told_by, now()))
}

/// What it is at, and who told it: the supervisor, which sees what is there now, or else what was written. What has ended is
/// at nothing.
fn look(paths: &Paths, found: &Found) -> (View, &'static str) {
    if found.archived.is_some() {
        return (View::unknown(), "archive");
    }
    if let Some(view) = ask(paths, found) {
        return (view, "supervisor");
    }
    (turns::view(paths, &turns::Whose::of(&found.record), now()), "store")
}

/// What the supervisor says, if one answers and knows the agent.
fn ask(paths: &Paths, found: &Found) -> Option<View> {
    let all = Turned::ask(paths);
    let view = all.get(found.record.id)?;
    // of very many agents the supervisor leaves the evidence out
    (view.source.is_none() || !view.why.is_empty()).then(|| view.clone())
}

fn text(view: &View, told_by: &str, now: Moment) -> String {
    let since = view.since.map_or_else(|| "-".to_owned(), |since| ago(since, now));
    let mut out = format!(
        "state   {}\nsource  {}\nsince   {since}\ntold by {told_by}\n",
        view.shown_state(),
        view.shown_source()
    );
    if view.background {
        out.push_str("work goes on behind a turn that is over\n");
    }
    if let Some(attention) = &view.attention {
        let wants = attention.kind.word();
        let asked = ago(attention.requested_at, now);
        out.push_str(&format!("it asks for {wants}, since {asked} ({} in all)\n", view.pending));
    }
    out.push('\n');
    if view.why.is_empty() {
        out.push_str("no signal was heard\n");
        return out;
    }
    let rows: Vec<Vec<String>> = view.why.iter().map(|evidence| row(evidence, now)).collect();
    out + &table::columns(0, &["SOURCE", "SAYS", "EVENT", "SINCE", "HEARD", "VERDICT"], &rows)
}

fn row(evidence: &Evidence, now: Moment) -> Vec<String> {
    vec![
        evidence.source.word().to_owned(),
        evidence.says.word().to_owned(),
        print::shown(evidence.event.as_bytes()),
        ago(evidence.since, now),
        ago(evidence.seen, now),
        verdict(evidence.verdict),
    ]
}

fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Won => "counts".to_owned(),
        Verdict::Agrees => "says the same".to_owned(),
        Verdict::Outweighed(by) => format!("outweighed by {}, which is stronger", by.word()),
        Verdict::Corrected(by) => format!("corrected by {}, which came later", by.word()),
        Verdict::Expired => "expired: not renewed in time".to_owned(),
        Verdict::Contradicts(other) => format!("contradicts {}: neither counts", other.word()),
    }
}

fn ago(at: Moment, now: Moment) -> String {
    format!("{} ago", age(at, now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::turn::{Observation, Source, State, Turns};

    #[test]
    fn nothing_heard_is_a_dash() {
        let said = text(&View::unknown(), "store", Moment::default());
        assert!(said.starts_with("state   -\nsource  -\nsince   -\n"), "{said}");
        assert!(said.ends_with("no signal was heard\n"), "{said}");
    }

    #[test]
    fn each_signal_has_its_line_and_its_verdict() {
        let at = Moment::from_millis(1_000_000);
        let mut turns = Turns::new("one");
        turns.observe(&Observation::of(Source::Registry, Some(State::Working), at, "busy"));
        turns.observe(&Observation::of(Source::Title, Some(State::Waiting), at, "mark"));
        let now = at.after(Duration::from_secs(90));
        let said = text(&turns.view(now), "supervisor", now);
        let lines: Vec<&str> = said.lines().skip(6).collect();
        assert!(said.starts_with("state   working\nsource  registry\nsince   1 min ago\n"), "{said}");
        assert!(lines[0].starts_with("registry") && lines[0].ends_with("counts"), "{said}");
        assert!(
            lines[1].starts_with("title") && lines[1].ends_with("outweighed by registry, which is stronger"),
            "{said}"
        );
    }
}
