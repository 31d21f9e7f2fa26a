//! The pane of a session: one look at it before anything is written, and the same look to say why a guard did not hold.

use bstr::ByteSlice;

use super::{NotSent, Order, refuse};
use crate::coordinator::sending::{self, Key, Unsendable};
use crate::lifecycle::paste::{self, Hand, NotPasted};
use crate::record::{PaneId, Record, ServerEpoch, State};
use crate::tmux::guarded::{Epoch, Guard};
use crate::tmux::{OneShot, Unanswered};

/// What is asked of the pane, a word each. The last is 1, 0, or nothing where tmux does not know it.
const FORMAT: &str = "#{pane_id} #{pid} #{start_time} #{pane_pid} #{pane_dead} #{pane_in_mode} \
                      #{pane_synchronized} #{pane_input_off} b#{bracket_paste_flag}";

/// The pane of a live record.
pub(super) struct Pane {
    id: PaneId,
    process: i32,
    epoch: ServerEpoch,
    server: OneShot,
}

/// What was seen of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    server: i32,
    started_at: i64,
    process: i32,
    dead: bool,
    in_mode: bool,
    synchronized: bool,
    input_off: bool,
    brackets: Option<bool>,
    knows_unchanged: bool,
}

impl Pane {
    /// That of a record, if its agent is somewhere.
    pub(super) fn of(record: &Record) -> Result<Pane, NotSent> {
        match &record.state {
            State::Live => {}
            State::Frozen { .. } => {
                return refuse("not_running", "it is frozen; `ait restore` brings it back");
            }
            State::Freezing | State::Restoring { .. } | State::Aborting { .. } => {
                return refuse("not_running", "it is being frozen or restored");
            }
        }
        let place = (record.location.pane_id(), record.location.process(), record.ait.server.as_ref());
        let (Some(id), Some(process), Some(epoch)) = place else {
            return refuse("not_running", "it is not running");
        };
        let server = OneShot::new(&epoch.socket).map_err(|why| unanswered(&why))?;
        Ok(Pane { id, process: process.pid, epoch: epoch.clone(), server })
    }

    /// Looks at it, and takes away buffers that a send to it left when it was killed: their names begin with `buffers`.
    pub(super) async fn look(&self, buffers: &str) -> Result<Seen, NotSent> {
        let pane = self.id.to_string();
        let words = [
            "display-message",
            "-p",
            "-t",
            pane.as_str(),
            FORMAT,
            ";",
            "list-commands",
            "paste-buffer",
            ";",
            "list-buffers",
            "-F",
            "#{buffer_name}",
        ];
        let answer = self.server.run(words).await.map_err(|why| unanswered(&why))?;
        paste::take_away(&self.server, buffers, &answer).await;
        match read(&pane, &answer) {
            Some(seen) => Ok(seen),
            None => refuse("not_running", "its pane is gone"),
        }
    }

    /// What writes into it as it was seen.
    pub(super) fn hand(&self, seen: &Seen, buffers: &str) -> Hand<'_> {
        let started_at = self.epoch.started_at.unwrap_or(seen.started_at);
        let epoch = Epoch { pid: self.epoch.pid, started_at };
        let guard = Guard::new(tmux_control::PaneId(self.id.0), epoch).process(self.process);
        Hand::new(&self.server, guard, buffers, seen.knows_unchanged)
    }

    /// Why nothing was written.
    pub(super) async fn why_not(&self, order: &Order<'_>, why: &NotPasted) -> NotSent {
        let now = self.look("ait-none").await;
        match now.and_then(|seen| self.holds(&seen).and_then(|()| seen.refuses(order))) {
            Err(refused) => refused,
            Ok(()) => Unsendable::new("not_written", why.to_string()).into(),
        }
    }

    /// Whether it is the record's still.
    fn holds(&self, seen: &Seen) -> Result<(), NotSent> {
        let same = seen.server == self.epoch.pid
            && self.epoch.started_at.is_none_or(|started| started == seen.started_at)
            && seen.process == self.process;
        if same { Ok(()) } else { refuse("not_running", "its pane is another's now") }
    }
}

impl Seen {
    /// What of the pane keeps this from being written.
    pub(super) fn refuses(&self, order: &Order<'_>) -> Result<(), NotSent> {
        if self.dead {
            return refuse("not_running", "its pane is dead");
        }
        if self.input_off {
            return refuse("input_off", "its pane is closed to input");
        }
        let named = order.keys.iter().any(|key| *key != Key::Enter) && !order.force;
        if named && self.in_mode {
            return refuse("in_mode", "its pane is in a mode (copy mode?), which would take the key");
        }
        let whole = order.written(self.may_bracket()).is_some_and(|(text, _)| sending::needs_brackets(text));
        if whole && self.in_mode && self.may_bracket() && !order.force {
            let why = "its pane is in a mode (copy mode?), where tmux puts no brackets around a text: its lines would be keys";
            return refuse("in_mode", why);
        }
        if named && self.synchronized {
            return refuse(
                "synchronized",
                "its window's panes are synchronized: all of them would get the key",
            );
        }
        Ok(())
    }

    /// Whether a paste is bracketed, or may be where this tmux does not say.
    pub(super) fn may_bracket(&self) -> bool {
        self.brackets.unwrap_or(true)
    }
}

fn read(pane: &str, answer: &[u8]) -> Option<Seen> {
    let line = std::str::from_utf8(answer.lines().next()?).ok()?;
    let fields: Vec<&str> = line.split(' ').collect();
    let [id, server, started_at, process, dead, mode, synchronized, input_off, brackets] = fields[..] else {
        return None;
    };
    let is = |text: &str| !matches!(text, "" | "0");
    (id == pane).then_some(())?;
    Some(Seen {
        server: server.parse().ok()?,
        started_at: started_at.parse().ok()?,
        process: process.parse().ok()?,
        dead: is(dead),
        in_mode: is(mode),
        synchronized: is(synchronized),
        input_off: is(input_off),
        brackets: brackets.strip_prefix('b').filter(|flag| !flag.is_empty()).map(is),
        knows_unchanged: paste::knows_unchanged(answer),
    })
}

fn unanswered(why: &Unanswered) -> NotSent {
    let word = match why {
        Unanswered::NoServer { .. } | Unanswered::Refused { .. } => "not_running",
        Unanswered::Unreachable { .. }
        | Unanswered::ProtocolMismatch { .. }
        | Unanswered::Timeout { .. }
        | Unanswered::TooLong { .. }
        | Unanswered::NoBinary
        | Unanswered::Io { .. } => "unknown",
    };
    Unsendable::new(word, why.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_read_and_another_pane_is_none() {
        let answer = b"%3 10 1700 55 0 1 0 0 b\npaste-buffer (pasteb) [-dpr]\nait-x\n";
        let seen = read("%3", answer).unwrap();
        assert!(seen.in_mode && !seen.dead && !seen.synchronized && !seen.knows_unchanged);
        assert_eq!((seen.process, seen.brackets, seen.may_bracket()), (55, None, true));
        assert_eq!(read("%3", b"%3 10 1700 55 0 0 0 0 b0\n").unwrap().brackets, Some(false));
        assert_eq!(read("%4", answer), None);
        assert_eq!(read("%3", b" 10 1700     b\n"), None);
    }
}
