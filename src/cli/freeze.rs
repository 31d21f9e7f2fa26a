//! `ait freeze`: ends agents that wait, keeps their screens, and puts a stand-in into each pane.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::targets::{self, Target};
use super::{Exit, Failure, ask, coordinate, print, progress};
use crate::coordinator::{End, Outcome, Policy};
use crate::record::RecordId;
use crate::store::{Paths, Store};

/// End an agent and keep its place: its screen stays in its pane, its conversation can be restored.
///
/// An agent that works, asks, or has unsent text in its prompt line is not ended unless --force says so. The freeze goes on in
/// a process of its own: closing this terminal, or the pane it runs in, does not stop it.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait freeze %3            the agent in this pane\n  ait freeze --idle=30m    \
                        every agent that has waited for half an hour\n  ait freeze --all -n      what would be frozen\n\n\
                        Without a source that says what an agent does, you are asked; a script needs --force."
)]
pub(super) struct Args {
    /// The agent: its record (`ait status`), its session's name, or its pane (%N)
    #[arg(value_name = "ID|NAME|PANE", required_unless_present_any = ["all", "idle"], conflicts_with_all = ["all", "idle"])]
    target: Option<Target>,
    /// Every agent on every server that may be ended; the others are named
    #[arg(long)]
    all: bool,
    /// Every agent that has waited this long
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m", value_parser = span, conflicts_with = "force")]
    idle: Option<Duration>,
    /// Say what would be done and do nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Whatever it is doing, and whether or not it can come back
    #[arg(long)]
    force: bool,
    /// A server by its socket; may be given several times
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// One line of JSON per step and per end
    #[arg(long)]
    json: bool,
}

/// A time such as `90`, `90s`, `10m`, `2h`, `1d`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err("a time is a number and s, m, h or d".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "a time is a number and s, m, h or d".to_owned())?;
    Ok(Duration::from_secs(number.saturating_mul(factor)))
}

pub(super) fn run(args: Args) -> Result<Exit, Failure> {
    super::block_on(async move {
        let store = Store::open(Paths::from_env()?);
        match &args.target {
            Some(target) => named(&store, target, &args).await,
            None => every(&store, &args).await,
        }
    })
}

async fn named(store: &Store, target: &Target, args: &Args) -> Result<Exit, Failure> {
    let record = targets::one(store, target, &args.socket).await?;
    let policy = if args.force { Policy::Force } else { Policy::Named };
    let ended = freeze(store, &[record], policy, args).await?;
    let unknown = |outcome: &Outcome| {
        outcome.end == End::Refused && matches!(outcome.word.as_str(), "unknown" | "composer_unknown")
    };
    let asks = std::io::stdin().is_terminal() && !args.json && !args.dry_run;
    if ended.iter().any(|(_, outcome)| unknown(outcome)) && asks {
        if !ask::whether("End it all the same?")? {
            return Ok(Exit::FAILED);
        }
        return Ok(progress::exit(&freeze(store, &[record], Policy::Accepted, args).await?));
    }
    Ok(progress::exit(&ended))
}

async fn every(store: &Store, args: &Args) -> Result<Exit, Failure> {
    let policy = match (args.force, args.idle) {
        (true, _) => Policy::Force,
        (false, Some(span)) => Policy::Idle(span),
        (false, None) => Policy::Sweep,
    };
    let all = targets::all(store, &args.socket, !args.dry_run).await?;
    if !args.json {
        for name in &all.unadopted {
            print::text(&format!("{name}  would adopt\n"))?;
        }
        for [name, why] in &all.skipped {
            print::text(&format!("{name}  skipped: {}\n", print::shown(why.as_bytes())))?;
        }
        if all.records.is_empty() && all.unadopted.is_empty() {
            print::text("no agent runs\n")?;
        }
    }
    let mut failed = all.unknown;
    if !all.records.is_empty() {
        let ended = freeze(store, &all.records, policy, args).await?;
        // one that may not be ended is skipped and said; that is no failure of all
        failed |= ended.iter().any(|(_, outcome)| matches!(outcome.end, End::Failed | End::Left));
    }
    Ok(if failed { Exit::FAILED } else { Exit::OK })
}

async fn freeze(
    store: &Store,
    records: &[RecordId],
    policy: Policy,
    args: &Args,
) -> Result<Vec<(RecordId, Outcome)>, Failure> {
    let mut arguments = vec!["freeze".into(), "--policy".into(), coordinate::word(policy).into()];
    if args.dry_run {
        arguments.push("--dry-run".into());
    }
    arguments.extend(records.iter().map(|record| record.to_string().into()));
    progress::follow(arguments, &store.read()?.records, args.json).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86400), ("0", 0)]
        {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for odd in ["", "m", "-1", "1w", "1.5h", "10 m"] {
            assert!(span(odd).is_err(), "{odd}");
        }
    }
}
