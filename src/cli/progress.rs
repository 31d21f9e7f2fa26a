//! What a coordinator says, shown: a line per record on a terminal, or its JSON as it comes.

use std::ffi::OsString;

use super::{Exit, Failure, print, program};
use crate::coordinator::{End, Outcome, Told};
use crate::lifecycle::host::{self, Hosted};
use crate::record::{RecordId, Records};

/// Runs `ait coordinate` and shows what it says; the outcomes, in the order of their ends.
///
/// # Errors
/// It could not be started.
pub(super) async fn follow(
    arguments: Vec<OsString>,
    records: &Records,
    json: bool,
) -> Result<Vec<(RecordId, Outcome)>, Failure> {
    let mut hosted = host::spawn(&program::path()?, arguments)?;
    let mut ended = Vec::new();
    while let Some(told) = said(&mut hosted).await {
        if json {
            print::json_line(&told)?;
        }
        if let Told::Outcome { record, outcome } = told {
            if !json {
                print::text(&line(record, &outcome, records))?;
            }
            ended.push((record, outcome));
        }
    }
    let status = hosted.ended().await?;
    if ended.is_empty() {
        return Err(Failure::new(Exit::FAILED, format!("the coordinator ended without a word: {status}"))
            .hint("`ait doctor` says what is in the way"));
    }
    Ok(ended)
}

async fn said(hosted: &mut Hosted) -> Option<Told> {
    hosted.next().await
}

/// The exit code of a command that did these: the first that is not as asked decides.
pub(super) fn exit(ended: &[(RecordId, Outcome)]) -> Exit {
    let code = |outcome: &Outcome| match outcome.end {
        End::Done | End::Planned => Exit::OK,
        End::Refused if outcome.word == "lease_held" => Exit::LEASE_HELD,
        End::Refused => Exit::REFUSED,
        End::Failed | End::Left => Exit::FAILED,
    };
    ended.iter().map(|(_, outcome)| code(outcome)).find(|exit| *exit != Exit::OK).unwrap_or(Exit::OK)
}

/// One record's end as text.
fn line(record: RecordId, outcome: &Outcome, records: &Records) -> String {
    let shown = |text: &str| print::shown(text.as_bytes());
    let who = records.get(record).map_or_else(
        || record.to_string(),
        |known| format!("{record}  {} ({})", shown(&known.window), shown(&known.agent_kind)),
    );
    let how = match outcome.end {
        End::Done => outcome.word.clone(),
        End::Planned => outcome.word.replace('_', " "),
        End::Refused => format!("refused: {}", outcome.word),
        End::Failed => format!("failed: {}", outcome.word),
        End::Left => format!("left to the supervisor: {}", outcome.word),
    };
    let mut text = format!("{who}  {how}");
    if !outcome.detail.is_empty() {
        text.push_str(&format!("  {}", shown(&outcome.detail)));
    }
    text.push('\n');
    for warning in &outcome.warnings {
        text.push_str(&format!("  warning: {}\n", shown(warning)));
    }
    if let Some(hint) = &outcome.hint {
        text.push_str(&format!("  hint: {hint}\n"));
    }
    text
}
