//! What becomes of the model at each event, and what is to be done for it. Nothing here touches the world.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::model::{Kept, Model, Open, Prompt, no_restore};
use super::view;
use crate::record::{Record, RecordId, RestoreMode};
use crate::tui::lines::{Lines, one_row};
use crate::tui::pager::{Chosen, Found, Move, Pager, Way};

/// The longest text that is searched for, in characters.
const SEARCH_LIMIT: usize = 200;
/// Rows to a turn of the wheel.
const WHEEL: isize = 3;

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A key.
    Key(KeyEvent),
    /// Text that was pasted: never read as keys.
    Paste(String),
    /// The wheel was turned, down if positive.
    Wheel(isize),
    /// The terminal has another size.
    Resize(u16, u16),
    /// The store was read.
    Records(Heard),
    /// The capture of a record was read.
    Capture {
        /// Of which.
        id: RecordId,
        /// What there was.
        kept: Kept,
        /// The text.
        text: Vec<u8>,
    },
    /// The conversation of a record was read, or why not.
    Transcript(RecordId, Result<String, String>),
    /// Text was copied, and where to; or why not.
    Copied(Result<String, String>),
    /// What became of a restore that was begun from here, unless it replaced us.
    Restored(RecordId, Result<String, String>),
    /// A record was dropped, or why not.
    Dropped(RecordId, Result<(), String>),
    /// The viewer's own pane carries the stamp of the open record.
    StandsIn,
}

/// What the store said.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// All records; none if they could not be read.
    pub records: Option<Vec<Arc<Record>>>,
    /// What is wrong with the store.
    pub trouble: Option<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Read the capture of a record; answer with [`Event::Capture`].
    Capture(RecordId),
    /// Read a conversation's file; answer with [`Event::Transcript`].
    Transcript(RecordId, String),
    /// Copy a text; answer with [`Event::Copied`].
    Copy(String),
    /// Drop a record if it still may be dropped from here; answer with [`Event::Dropped`].
    Drop(RecordId),
    /// Bring a record's agent back, or begin its task anew; answer with [`Event::Restored`].
    Restore(RecordId, RestoreMode),
    /// End; a stand-in closes its pane.
    Quit,
}

/// Takes one event in.
pub fn update(model: &mut Model, event: Event) -> Vec<Act> {
    let acts = match event {
        Event::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Event::Key(key) => {
            model.message.clear();
            press(model, key)
        }
        Event::Paste(text) => {
            if let Prompt::Search(typed) = &mut model.prompt {
                let room = SEARCH_LIMIT.saturating_sub(typed.chars().count());
                typed.extend(one_row(&text).chars().take(room));
            }
            Vec::new()
        }
        Event::Wheel(turns) => {
            travel(model, Move::Rows(turns.saturating_mul(WHEEL)), false);
            Vec::new()
        }
        Event::Resize(columns, rows) => {
            model.size = (columns, rows);
            Vec::new()
        }
        Event::Records(heard) => hear(model, heard),
        Event::Capture { id, kept, text } => {
            if let Some(open) = model.open.as_mut().filter(|open| open.id == id) {
                let first = open.capture.lines().is_empty();
                open.capture.replace(Lines::new(text));
                if kept == Kept::Nothing {
                    open.capture.go(Move::Start);
                } else if first {
                    open.capture.go(Move::End);
                }
                open.kept = kept;
            }
            Vec::new()
        }
        Event::Transcript(id, read) => {
            told(model, id, read);
            Vec::new()
        }
        Event::Copied(done) => {
            model.message = match done {
                Ok(place) => format!("copied to {}", one_row(&place)),
                Err(why) => format!("not copied: {}", one_row(&why)),
            };
            Vec::new()
        }
        Event::Restored(id, done) => {
            model.message = match done {
                Ok(how) => format!("{id} is back: {}", one_row(&how)),
                Err(why) => format!("not restored: {}", one_row(&why)),
            };
            Vec::new()
        }
        Event::Dropped(id, done) => dropped(model, id, done),
        Event::StandsIn => {
            model.own.stands_in = true;
            Vec::new()
        }
    };
    view::arrange(model);
    acts
}

/// Opens a record; the list stays behind it if it came from there.
pub fn open(model: &mut Model, id: RecordId, record: Option<Arc<Record>>) -> Vec<Act> {
    model.open = Some(Open::new(id, record, model.coloured));
    view::arrange(model);
    vec![Act::Capture(id)]
}

fn hear(model: &mut Model, heard: Heard) -> Vec<Act> {
    let mut acts = Vec::new();
    model.trouble = heard.trouble.map(|trouble| one_row(&trouble));
    let Some(records) = heard.records else { return acts };
    if let Some(open) = &mut model.open {
        match records.iter().find(|record| record.id == open.id) {
            Some(now) => {
                let text = |record: &Record| (record.capture.clone(), record.frozen_at);
                if open.record.as_deref().map(text) != Some(text(now)) || open.kept == Kept::Nothing {
                    acts.push(Act::Capture(open.id));
                }
                open.record = Some(Arc::clone(now));
                open.there = true;
            }
            None => open.there = false,
        }
    }
    let under = model.list.records.get(model.list.cursor).map(|record| record.id);
    model.list.records =
        records.into_iter().filter(|record| record.state.name() != crate::record::StateName::Live).collect();
    let count = model.list.records.len();
    let same = model.list.records.iter().position(|record| Some(record.id) == under);
    model.list.cursor = same.unwrap_or(model.list.cursor.min(count.saturating_sub(1)));
    // what was asked about a record is asked anew when the record is not what it was
    if let Prompt::Drop(id) = model.prompt
        && !model.record().is_some_and(|record| record.id == id && model.no_drop(record).is_none())
    {
        model.prompt = Prompt::None;
    }
    acts
}

fn told(model: &mut Model, id: RecordId, read: Result<String, String>) {
    let coloured = model.coloured;
    let Some(open) = model.open.as_mut().filter(|open| open.id == id) else { return };
    match read {
        Ok(text) if text.trim().is_empty() => model.message = "the transcript holds no text".into(),
        Ok(text) => {
            let mut pager = Pager::new(Lines::new(text.into_bytes()), coloured);
            pager.go(Move::End);
            open.transcript = Some(pager);
            open.in_transcript = true;
        }
        Err(why) => model.message = one_row(&why),
    }
}

fn dropped(model: &mut Model, id: RecordId, done: Result<(), String>) -> Vec<Act> {
    match done {
        Err(why) => model.message = format!("not dropped: {}", one_row(&why)),
        Ok(()) => {
            model.message = format!("{id} is dropped");
            if model.own.stands_in {
                return vec![Act::Quit];
            }
            if model.from_list {
                model.open = None;
            }
        }
    }
    Vec::new()
}

fn press(model: &mut Model, key: KeyEvent) -> Vec<Act> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return interrupt(model);
    }
    match std::mem::take(&mut model.prompt) {
        Prompt::None => {}
        Prompt::Search(typed) => {
            type_search(model, typed, key);
            return Vec::new();
        }
        Prompt::Drop(id) => {
            if key.code == KeyCode::Char('D') {
                return vec![Act::Drop(id)];
            }
            model.message = "kept".into();
            return Vec::new();
        }
    }
    if let Some((to, extend)) = movement(key) {
        travel(model, to, extend);
        return Vec::new();
    }
    if control || key.modifiers.contains(KeyModifiers::ALT) {
        return Vec::new();
    }
    match key.code {
        KeyCode::Char('q') if model.help.is_some() => model.help = None,
        KeyCode::Char('q') => return vec![Act::Quit],
        KeyCode::Char('?') => match model.help.take() {
            Some(_) => {}
            None => {
                let text = view::help(model);
                model.help = Some(Pager::new(Lines::new(text.into_bytes()), false));
            }
        },
        KeyCode::Esc | KeyCode::Backspace => back(model),
        KeyCode::Char('/') if model.pager().is_some() => model.prompt = Prompt::Search(String::new()),
        KeyCode::Char('n') => search(model, |pager| pager.next(Way::On)),
        KeyCode::Char('N') => search(model, |pager| pager.next(Way::Back)),
        _ if model.help.is_some() => {}
        KeyCode::Char('k') => ask_drop(model),
        KeyCode::Char('R') => return restore(model, RestoreMode::Resume),
        KeyCode::Char('p') => return restore(model, RestoreMode::Repick),
        KeyCode::Enter if model.open.is_none() => {
            if let Some(record) = model.list.records.get(model.list.cursor).cloned() {
                model.from_list = true;
                return open(model, record.id, Some(record));
            }
        }
        KeyCode::Char('r') => {
            if let Some(pager) = model.open.as_mut().map(Open::pager_mut) {
                pager.set_coloured(!pager.coloured());
            }
        }
        KeyCode::Char('t') => return transcript(model),
        KeyCode::Char('y') => return copy(model),
        _ => {}
    }
    Vec::new()
}

/// What a key moves, and whether it chooses on the way.
fn movement(key: KeyEvent) -> Option<(Move, bool)> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let extend = key.modifiers.contains(KeyModifiers::SHIFT);
    let to = match key.code {
        KeyCode::Char('d') if control => Move::HalfPages(1),
        KeyCode::Char('u') if control => Move::HalfPages(-1),
        KeyCode::Char('f') if control => Move::Pages(1),
        KeyCode::Char('b') if control => Move::Pages(-1),
        KeyCode::Char('n') if control => Move::Rows(1),
        KeyCode::Char('p') if control => Move::Rows(-1),
        _ if control || key.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char('j') => Move::Rows(1),
        KeyCode::Char('g') => Move::Start,
        KeyCode::Char('G') => return Some((Move::End, false)),
        KeyCode::Char(' ') => Move::Pages(1),
        KeyCode::Down => Move::Rows(1),
        KeyCode::Up => Move::Rows(-1),
        KeyCode::PageDown => Move::Pages(1),
        KeyCode::PageUp => Move::Pages(-1),
        KeyCode::Home => Move::Start,
        KeyCode::End => Move::End,
        _ => return None,
    };
    Some((to, extend))
}

fn travel(model: &mut Model, to: Move, extend: bool) {
    if let Some(pager) = model.pager_mut() {
        if extend {
            pager.extend(to)
        } else {
            pager.go(to)
        }
        return;
    }
    let page = view::list_rows(model).max(1);
    let last = model.list.records.len().saturating_sub(1);
    let rows = match to {
        Move::Rows(rows) => rows,
        Move::HalfPages(count) => count.saturating_mul((page / 2).max(1).cast_signed()),
        Move::Pages(count) => count.saturating_mul((page - 1).max(1).cast_signed()),
        Move::Start => isize::MIN,
        Move::End => isize::MAX,
    };
    model.list.cursor = model.list.cursor.saturating_add_signed(rows).min(last);
}

/// One step back: out of help, a range, the conversation, the record.
fn back(model: &mut Model) {
    if model.help.take().is_some() {
        return;
    }
    let Some(open) = &mut model.open else { return };
    if open.pager_mut().forget_range() {
        return;
    }
    if open.in_transcript {
        open.in_transcript = false;
    } else if model.from_list {
        model.open = None;
    }
}

/// Ctrl-C leaves what is being asked; it ends a viewer, but closes no stand-in.
fn interrupt(model: &mut Model) -> Vec<Act> {
    if model.prompt != Prompt::None {
        model.prompt = Prompt::None;
    } else if model.help.take().is_none() {
        if !model.own.stands_in {
            return vec![Act::Quit];
        }
        model.message = "q closes this pane; the record stays frozen".into();
    }
    Vec::new()
}

fn type_search(model: &mut Model, mut typed: String, key: KeyEvent) {
    match key.code {
        KeyCode::Enter => {
            search(model, |pager| pager.search(&typed));
            return;
        }
        KeyCode::Esc => return,
        // nothing is left to take back: the search is left
        KeyCode::Backspace if typed.is_empty() => return,
        KeyCode::Backspace => drop(typed.pop()),
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => typed.clear(),
        KeyCode::Char(c)
            if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
                && typed.chars().count() < SEARCH_LIMIT =>
        {
            typed.push_str(&one_row(c.encode_utf8(&mut [0; 4])));
        }
        _ => {}
    }
    model.prompt = Prompt::Search(typed);
}

fn search(model: &mut Model, act: impl FnOnce(&mut Pager) -> Found) {
    let Some(pager) = model.pager_mut() else { return };
    let found = act(pager);
    model.message = match found {
        Found::Here => return,
        Found::Around => "the search went round".into(),
        Found::Nowhere => "not found".into(),
        Found::Unasked => "/ searches".into(),
    };
}

fn ask_drop(model: &mut Model) {
    let Some(record) = model.record() else { return };
    match model.no_drop(record) {
        Some(why) => model.message = format!("not dropped: {why}"),
        None => model.prompt = Prompt::Drop(record.id),
    }
}

/// A restore is another process's: where this viewer stands in the agent's own pane, it is replaced by it.
fn restore(model: &mut Model, mode: RestoreMode) -> Vec<Act> {
    let Some(record) = model.record() else { return Vec::new() };
    if let Some(why) = no_restore(record) {
        model.message = format!("not restored: {why}");
        return Vec::new();
    }
    let id = record.id;
    model.message = match mode {
        RestoreMode::Resume => "bringing its conversation back".into(),
        RestoreMode::Repick => "beginning a new conversation in its place".into(),
    };
    vec![Act::Restore(id, mode)]
}

fn transcript(model: &mut Model) -> Vec<Act> {
    let Some(open) = &mut model.open else { return Vec::new() };
    if open.in_transcript {
        open.in_transcript = false;
        return Vec::new();
    }
    match open.record.as_ref().map(|record| record.transcript_path.clone()) {
        Some(path) if !path.is_empty() => vec![Act::Transcript(open.id, path)],
        Some(_) | None => {
            model.message = "no transcript of it is known".into();
            Vec::new()
        }
    }
}

fn copy(model: &mut Model) -> Vec<Act> {
    let Some(open) = &mut model.open else { return Vec::new() };
    match open.pager().chosen() {
        Chosen::TooMuch => model.message = "not copied: more than 1 MiB is chosen".into(),
        Chosen::Text(text) if text.is_empty() => model.message = "nothing to copy here".into(),
        Chosen::Text(text) => {
            open.pager_mut().forget_range();
            return vec![Act::Copy(text)];
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
