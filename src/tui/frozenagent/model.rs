//! What the viewer knows: the records, the one that is open with its texts, what was asked, and who it stands in for.

use std::sync::Arc;

use crate::record::{PaneId, Record, RecordId, State, StateName};
use crate::tui::lines::{Lines, one_row};
use crate::tui::pager::Pager;

/// All the viewer knows.
#[derive(Debug)]
pub struct Model {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Whether colours are wanted (`NO_COLOR` is not set).
    pub coloured: bool,
    /// Every record that is not live, in the store's order.
    pub list: List,
    /// The record that is open.
    pub open: Option<Open>,
    /// Whether it was opened from the list, so that there is a way back.
    pub from_list: bool,
    /// What is being typed or asked.
    pub prompt: Prompt,
    /// The help page, while it is shown.
    pub help: Option<Pager>,
    /// One line about the last thing done; gone with the next key.
    pub message: String,
    /// What is wrong with the store, if anything is.
    pub trouble: Option<String>,
    /// The pane the viewer runs in, and whether it carries the stamp of the open record.
    pub own: Own,
}

/// The viewer's own pane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Own {
    /// tmux's id of it, inside tmux.
    pub pane: Option<PaneId>,
    /// Whether it is proven to be the stand-in of the open record.
    pub stands_in: bool,
}

/// The list of records.
#[derive(Debug, Default)]
pub struct List {
    /// The records.
    pub records: Vec<Arc<Record>>,
    /// Which one is under the cursor.
    pub cursor: usize,
    /// The first one on the screen.
    pub top: usize,
}

/// A record that is open.
#[derive(Debug)]
pub struct Open {
    /// Which one.
    pub id: RecordId,
    /// The record as last known; none if it never was.
    pub record: Option<Arc<Record>>,
    /// Whether the store still has it.
    pub there: bool,
    /// What was kept of it.
    pub kept: Kept,
    /// That text.
    pub capture: Pager,
    /// The conversation, once it was asked for.
    pub transcript: Option<Pager>,
    /// Whether the conversation is shown.
    pub in_transcript: bool,
}

/// Which text stands for a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// `capture.ansi`, whole.
    Ansi,
    /// `capture.txt`, whole.
    Txt,
    /// The end of a capture that is longer than is read.
    Tail,
    /// No capture; the page says what is known.
    Nothing,
}

/// What is being typed or asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Prompt {
    /// Nothing.
    #[default]
    None,
    /// A text to search for.
    Search(String),
    /// Whether to drop this record.
    Drop(RecordId),
}

impl Model {
    /// Before anything was read.
    #[must_use]
    pub fn new(size: (u16, u16), coloured: bool, pane: Option<PaneId>) -> Model {
        Model {
            size,
            coloured,
            list: List::default(),
            open: None,
            from_list: false,
            prompt: Prompt::None,
            help: None,
            message: String::new(),
            trouble: None,
            own: Own { pane, stands_in: false },
        }
    }

    /// The text that keys move in, if one is shown.
    pub fn pager_mut(&mut self) -> Option<&mut Pager> {
        self.help.as_mut().or_else(|| self.open.as_mut().map(Open::pager_mut))
    }

    /// The same, to be drawn.
    #[must_use]
    pub fn pager(&self) -> Option<&Pager> {
        self.help.as_ref().or_else(|| self.open.as_ref().map(Open::pager))
    }

    /// The record that a key would be about.
    #[must_use]
    pub fn record(&self) -> Option<&Arc<Record>> {
        match &self.open {
            Some(open) => open.record.as_ref().filter(|_| open.there),
            None => self.list.records.get(self.list.cursor),
        }
    }

    /// As [`no_drop`], for this viewer.
    #[must_use]
    pub fn no_drop(&self, record: &Record) -> Option<String> {
        no_drop(record, self.own)
    }
}

/// Why this record cannot be restored now; none if it can be tried.
#[must_use]
pub fn no_restore(record: &Record) -> Option<String> {
    (record.state.name() != StateName::Frozen).then(|| format!("it is {}", record.state.name()))
}

/// Why this record cannot be dropped from there; none if it can. Without a coordinator only a record is dropped whose
/// pane is nobody's or the viewer's own.
#[must_use]
pub fn no_drop(record: &Record, own: Own) -> Option<String> {
    if record.state.name() != StateName::Frozen {
        return Some(format!("it is {}", record.state.name()));
    }
    if record.lease.is_some() {
        return Some("another operation holds it".into());
    }
    match record.location.pane_id() {
        None => None,
        Some(pane) if own.stands_in && own.pane == Some(pane) => None,
        Some(pane) => Some(format!("its stand-in is in {pane}, and can drop it")),
    }
}

impl Open {
    /// A record that was just opened, before its capture is read.
    #[must_use]
    pub fn new(id: RecordId, record: Option<Arc<Record>>, coloured: bool) -> Open {
        let there = record.is_some();
        Open {
            id,
            record,
            there,
            kept: Kept::Nothing,
            capture: Pager::new(Lines::new(Vec::new()), coloured),
            transcript: None,
            in_transcript: false,
        }
    }

    /// The text that is shown.
    #[must_use]
    pub fn pager(&self) -> &Pager {
        match &self.transcript {
            Some(transcript) if self.in_transcript => transcript,
            Some(_) | None => &self.capture,
        }
    }

    /// The same, to be moved in.
    pub fn pager_mut(&mut self) -> &mut Pager {
        match &mut self.transcript {
            Some(transcript) if self.in_transcript => transcript,
            Some(_) | None => &mut self.capture,
        }
    }

    /// What the one who looks must know of the record besides its text: that it is elsewhere, gone, or why it is back.
    #[must_use]
    pub fn news(&self) -> Option<String> {
        let Some(record) = self.record.as_ref().filter(|_| self.there) else {
            return Some("the store has no such record any more: it was dropped or has ended".into());
        };
        match &record.state {
            State::Live => Some(match record.location.pane_id() {
                Some(pane) => format!("it runs again, in {pane} of session {}", one_row(&record.session)),
                None => "it runs again".into(),
            }),
            State::Freezing => Some("it is being frozen".into()),
            State::Restoring { mode, .. } => Some(format!("it is being brought back ({})", mode.word())),
            State::Aborting { .. } => Some(match failed(record) {
                Some(why) => format!("bringing it back failed: {why}"),
                None => "bringing it back failed".into(),
            }),
            State::Frozen { .. } => failed(record).map(|why| format!("the last restore failed: {why}")),
        }
    }
}

/// Why the last restore failed, without the token of the attempt.
fn failed(record: &Record) -> Option<String> {
    let error = record.restore.last_error.as_str();
    let why = match error.split_once(':') {
        Some((nonce, why)) if nonce.parse::<crate::record::Nonce>().is_ok() => why,
        Some(_) | None => error,
    };
    (!why.is_empty()).then(|| one_row(why))
}

/// What the list and the header say of how the agent went: the cause of its loss, else its state.
#[must_use]
pub fn cause(record: &Record) -> &'static str {
    match &record.state {
        State::Frozen { lost: Some(lost) } => lost.cause.word(),
        State::Frozen { lost: None }
        | State::Live
        | State::Freezing
        | State::Restoring { .. }
        | State::Aborting { .. } => record.state.name().word(),
    }
}

/// What is known of a record, for a page that has no capture to show. `misses`: what was looked for.
#[must_use]
pub fn known(id: RecordId, record: Option<&Record>, misses: &[String]) -> String {
    let mut page = String::new();
    let mut say = |name: &str, value: &str| {
        if !value.is_empty() {
            page.push_str(&format!("{name:<14}{}\n", one_row(value)));
        }
    };
    say("record", &id.to_string());
    match record {
        None => say("", "the store has no such record"),
        Some(record) => {
            say("project", &record.root);
            say("window", &record.window);
            say("session", &record.session);
            say("task", &task(record));
            say("agent", agent(record));
            say("state", record.state.name().word());
            if let Some(lost) = record.state.lost() {
                say("lost", &lost.at.to_string());
                say("cause", lost.cause.word());
                say("exit status", &lost.exit_status.map(|status| status.to_string()).unwrap_or_default());
                say("signal", &lost.signal.map(|signal| signal.to_string()).unwrap_or_default());
                say("evidence", &lost.evidence);
            }
            say("conversation", &record.codeagent_session_id);
            say("transcript", &record.transcript_path);
            say("folder", record.ait.cwd.as_deref().unwrap_or_default());
            say("last phase", &record.last_phase);
        }
    }
    page.push('\n');
    page.push_str("There is no capture of its screen.\n");
    for miss in misses {
        page.push_str(&one_row(miss));
        page.push('\n');
    }
    page
}

/// What a record works on.
#[must_use]
pub fn task(record: &Record) -> String {
    let words = [record.operation.as_str(), record.task_id.as_str()];
    one_row(&words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
}

/// Which agent it is.
#[must_use]
pub fn agent(record: &Record) -> &str {
    if record.agent_string.is_empty() { &record.agent_kind } else { &record.agent_string }
}

/// The project's folder by its last name.
#[must_use]
pub fn project(record: &Record) -> String {
    one_row(record.root.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&record.root))
}

/// When it was frozen or lost, to the minute, UTC; empty if nobody wrote it down.
#[must_use]
pub fn when(record: &Record) -> String {
    let stamp = record.frozen_at.or(record.state_at).map(|stamp| stamp.to_string()).unwrap_or_default();
    match (stamp.get(..10), stamp.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time}Z"),
        (Some(_) | None, _) => stamp,
    }
}
