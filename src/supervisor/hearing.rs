//! What the sockets and the control clients say, one word at a time.

use std::path::{Path, PathBuf};

use super::{AttachFailure, Link, LinkEvent, LinkId, Now, RecordId, Supervisor, Up, Watched};
use crate::world::Marked;
use crate::world::mark::Mark;

impl Supervisor {
    pub(super) fn socket_seen(&mut self, socket: PathBuf, present: bool) {
        let server = self.servers.entry(socket).or_default();
        let before = server.present.replace(present);
        if before != Some(present) {
            self.news = true;
        }
        if present {
            server.remade = false;
            server.refused = false;
            server.left = None;
            match &mut server.link {
                // somebody may have just begun to listen
                Link::Paused { .. } => server.link = Link::Down,
                // another than ours: it is come to once ours is left
                Link::Up(up) => up.moved |= before == Some(false),
                Link::Down | Link::Attaching { .. } | Link::Leaving { .. } => {}
            }
        }
    }

    /// One word of a control client; a word of an earlier client of the same server is not heard.
    pub(super) fn hear(&mut self, now: Now, socket: &Path, link: LinkId, event: LinkEvent) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        if server.link_id() != Some(link) {
            return;
        }
        match event {
            LinkEvent::Attached(identity) => {
                if let Link::Attaching { .. } = server.link {
                    server.met(identity.process.clone());
                    // it speaks again: what it said before were not its last words
                    server.ends.retain(|(of, _)| *of != identity.process);
                    server.left = None;
                    server.trouble = None;
                    server.refused = false;
                    server.present = Some(true);
                    server.link = Link::Up(Box::new(Up::new(link, identity, now)));
                    let here: Vec<RecordId> = self
                        .records()
                        .filter(|record| {
                            record.ait.server.as_ref().is_some_and(|e| Path::new(&e.socket) == socket)
                        })
                        .map(|record| record.id)
                        .collect();
                    // whatever this client answers is asked after those deaths
                    for id in here {
                        if let Some(dying) = self.dying.get_mut(&id) {
                            dying.after = 0;
                            dying.next = None;
                        }
                    }
                    self.tell(now, Some(socket), None, "attached", "answer", String::new());
                }
            }
            LinkEvent::Failed(failure) => {
                server.refused = failure == AttachFailure::NoServer;
                if server.refused {
                    // its socket may have been deleted again
                    server.remade = false;
                }
                server.trouble = Some(match failure {
                    AttachFailure::NoServer => "nobody listens on the socket".into(),
                    AttachFailure::Unknown(why) => why,
                });
                server.pause(now.mono);
                self.news = true;
            }
            LinkEvent::Mark(Mark::Flow(windows)) => self.flowed(now, socket, &windows),
            LinkEvent::Mark(Mark::Titles(titles)) => {
                if let Some(up) = server.up_mut() {
                    up.titles = titles.into_iter().collect();
                }
            }
            LinkEvent::Mark(mark) => {
                if let Some(up) = server.up_mut() {
                    Self::marked(now, up, &mark);
                    if let Mark::Client { client, session } = mark {
                        self.client_moved(socket, client, session);
                    }
                }
            }
            LinkEvent::Answer { tag, answer } => self.answered(now, socket, tag, answer),
            LinkEvent::Overflow => {
                if let Some(up) = server.up_mut() {
                    up.soil(now.mono);
                }
            }
            LinkEvent::Ended { exit } => {
                // of a client that we let go ourselves, the end says nothing of the server
                if let Link::Up(up) = &server.link {
                    // somebody ended our client before a dead pane of ours was closed
                    if up.closing.is_some() {
                        let untidy = self.untidy.entry(socket.to_owned()).or_default();
                        untidy.insert(up.identity.process.clone());
                    }
                    let process = up.identity.process.clone();
                    server.ended(process, exit);
                } else if let Link::Leaving { process: Some(process), .. } = &server.link
                    && (exit.as_ref().is_some_and(|reason| !reason.is_empty())
                        || matches!(self.watched.get(process), Some(Watched::Dead { .. })))
                {
                    let process = process.clone();
                    server.ended(process, exit);
                }
                if let Some(process) = server.speaking_of() {
                    // it listens on, as far as is known
                    let dead = matches!(self.watched.get(process), Some(Watched::Dead { .. }));
                    server.listener = (!dead).then_some(process.pid);
                }
                if matches!(server.link, Link::Attaching { .. }) {
                    server.pause(now.mono);
                } else {
                    server.drop_link(now.mono);
                }
                self.news = true;
            }
        }
    }

    fn marked(now: Now, up: &mut Up, mark: &Mark) {
        match up.world.mark(mark) {
            // a listing under way may have read the names before
            Marked::Current if up.open.iter().any(|open| open.listing > 0) => up.soil(now.mono),
            Marked::Current => up.heard = now.mono,
            Marked::ReadAgain => up.soil(now.mono),
        }
    }
}
