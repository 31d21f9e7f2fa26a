//! The word at the next attach: what was brought back on a server and what is only offered, said once to whoever comes.
//!
//! It is one line in the status line of a client of the user's ([`Ask::Say`]): it takes no key, opens nothing and goes by
//! itself. What was said is kept on disk by the moment of the newest thing in it, so that neither another client nor another
//! supervisor says it again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bstr::BString;

use super::recovery::{Choice, Why, choose};
use super::{Action, Ask, Now, Supervisor, Writing};
use crate::record::{Record, Stamp, State};

/// Up to when all was said, by server.
pub type Said = BTreeMap<PathBuf, Stamp>;

/// Servers of which that is remembered; those where the oldest was said go first.
const SERVERS: usize = 64;

/// What there is to say on one server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    /// The newest moment in it.
    newest: Stamp,
}

/// How saying stands.
#[derive(Debug, Default)]
pub(super) struct Saying {
    /// What was said before; nothing is said before that is read.
    said: Option<Said>,
}

impl Supervisor {
    /// What was said before was read.
    pub(super) fn said_read(&mut self, said: Said) {
        self.saying.said.get_or_insert(said);
    }

    /// Somebody may be there to hear what was done: every server is looked at again.
    pub(super) fn greet_all(&mut self) {
        for up in self.servers.values_mut().filter_map(super::Server::up_mut) {
            up.greet = true;
        }
    }

    /// Asks who is there, on servers where somebody came and there is something to say.
    pub(super) fn greet(&mut self, now: Now) {
        if self.is_recovering() || !matches!(self.writing, Writing::Idle) {
            return;
        }
        let wanted: Vec<PathBuf> = self
            .servers
            .iter()
            .filter(|(_, server)| {
                server.up().is_some_and(|up| {
                    let asked =
                        |open: &super::server::Open| matches!(open.ask, Ask::Clients | Ask::Say { .. });
                    up.greet && up.world.is_complete() && !up.silent && !up.open.iter().any(asked)
                })
            })
            .map(|(socket, _)| socket.clone())
            .collect();
        for socket in wanted {
            let Some(known) = self.is_settled(&socket) else { continue };
            if let Some(up) = self.servers.get_mut(&socket).and_then(super::Server::up_mut) {
                up.greet = !known;
            }
            if known && self.word(&socket).is_some() {
                self.ask(now, &socket, Ask::Clients);
            }
        }
    }

    /// These clients of the user's are there: each hears it.
    pub(super) fn greeted(&mut self, now: Now, socket: &Path, clients: Vec<BString>) {
        let Some(word) = self.word(socket) else { return };
        for client in clients {
            let ask = Ask::Say { client, text: word.text.clone(), newest: word.newest };
            self.ask(now, socket, ask);
        }
    }

    /// It was said.
    pub(super) fn heard_word(&mut self, socket: &Path, newest: Stamp) {
        let Some(said) = &mut self.saying.said else { return };
        if said.get(socket).is_some_and(|before| *before >= newest) {
            return;
        }
        said.insert(socket.to_owned(), newest);
        while said.len() > SERVERS {
            let Some(oldest) = said.iter().min_by_key(|(_, at)| **at).map(|(at, _)| at.clone()) else {
                break;
            };
            said.remove(&oldest);
        }
        self.actions.push_back(Action::KeepSaid(said.clone()));
    }

    /// Whether there is something to say on that server once somebody comes.
    pub(super) fn has_word(&self, socket: &Path) -> bool {
        self.word(socket).is_some()
    }

    /// Whether nothing of that server is on its way back; `None` before it is known what was tried and said.
    fn is_settled(&self, socket: &Path) -> Option<bool> {
        let book = self.book()?;
        self.saying.said.as_ref()?;
        let on_its_way = |record: &Record| {
            record.lease.is_some() && record.state.lost().is_some()
                || choose(record, self.start.policies, book.get(&record.id)) == Some(Choice::Recover)
        };
        Some(!self.records().any(|record| is_of(record, socket) && on_its_way(record)))
    }

    fn word(&self, socket: &Path) -> Option<Word> {
        let (book, said) = (self.book()?, self.saying.said.as_ref()?);
        let before = said.get(socket);
        let is_new = |at: &Stamp| before.is_none_or(|before| at > before);
        let (mut back, mut offered) = (Vec::new(), Vec::new());
        for record in self.records().filter(|record| is_of(record, socket)) {
            match &record.state {
                State::Live => back.extend(record.ait.recovered.map(|recovered| recovered.at)),
                State::Frozen { lost: Some(lost) } => {
                    if let Some(Choice::Offer(why)) =
                        choose(record, self.start.policies, book.get(&record.id))
                    {
                        offered.push((lost.at, why));
                    }
                }
                State::Frozen { lost: None }
                | State::Freezing
                | State::Restoring { .. }
                | State::Aborting { .. } => {}
            }
        }
        back.retain(is_new);
        offered.retain(|(at, _)| is_new(at));
        let newest = back.iter().chain(offered.iter().map(|(at, _)| at)).max().copied()?;
        let whys: Vec<&Why> = offered.iter().map(|(_, why)| why).collect();
        Some(Word { text: text(back.len(), &whys), newest })
    }
}

/// Whether the record is or was last on that server.
fn is_of(record: &Record, socket: &Path) -> bool {
    record.ait.server.as_ref().is_some_and(|epoch| Path::new(&epoch.socket) == socket)
}

/// The line; a reason is given where it is one for all.
fn text(back: usize, offered: &[&Why]) -> String {
    let agents = |count: usize| if count == 1 { "1 agent".to_owned() } else { format!("{count} agents") };
    let why = offered.first().filter(|first| offered.iter().all(|why| why == *first));
    let why = why.map(|why| format!(" ({})", why.words())).unwrap_or_default();
    let said = match (back, offered.len()) {
        (back, 0) => format!("{} recovered", agents(back)),
        (0, offered) => format!("{} offered{why}", agents(offered)),
        (back, offered) => format!("{} recovered, {offered} offered{why}", agents(back)),
    };
    format!("ait: {said}: ait status")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_many_and_why() {
        let (stopped, crashed) = (Why::Stopped, Why::Crashed);
        for (back, offered, line) in [
            (1, vec![], "ait: 1 agent recovered: ait status"),
            (3, vec![&crashed], "ait: 3 agents recovered, 1 offered (it crashed by itself): ait status"),
            (3, vec![&crashed, &stopped], "ait: 3 agents recovered, 2 offered: ait status"),
            (
                0,
                vec![&stopped, &stopped],
                "ait: 2 agents offered (its server was stopped, which may have been meant): ait status",
            ),
        ] {
            assert_eq!(text(back, &offered), line);
        }
    }
}
