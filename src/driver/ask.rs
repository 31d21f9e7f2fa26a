//! A question of the supervisor as tmux commands, and tmux's replies as its answer.

use std::collections::BTreeMap;
use std::path::Path;

use crate::process;
use crate::supervisor::{Answer, Ask, Habits, Tag};
use crate::tmux::guarded::{self, BadValue, Dispatch, Epoch, Guard, Outcome, PaneOption, Token};
use crate::tmux::{Client, Identity, ReplyError, SendError, listing, say, settings};
use crate::world::mark::{TITLES_FORMAT, titles};
use crate::world::rows::{RemainOnExit, Snapshot};

type Reply = Result<Vec<u8>, ReplyError>;

/// Commands of one question at the most; a question's number and a part's give the number on the client.
const PARTS: u64 = 8;

/// The questions under way on one client.
#[derive(Debug, Default)]
pub(super) struct Asked {
    open: BTreeMap<Tag, Open>,
}

/// What is still awaited of one question.
#[derive(Debug)]
enum Open {
    /// `list-sessions`, `list-windows`, `list-panes`.
    Listing([Option<Reply>; 3]),
    /// The questions of `settings`.
    Habits([Option<Reply>; 7]),
    /// A guarded act.
    Act(Box<Dispatch>),
    /// `list-panes` of one pane.
    Pane,
    /// `list-clients`.
    Clients,
    /// The same, for what they show.
    Lookers,
    /// The titles, as their subscription tells them.
    Titles,
    /// A plain order.
    Order,
}

/// A question could not be put.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotAsked {
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Value(#[from] BadValue),
}

impl Asked {
    /// Puts a question to the server. An error is an answer too: nothing was done.
    pub(super) fn put(
        &mut self,
        client: &Client,
        program: &Path,
        tag: Tag,
        ask: &Ask,
    ) -> Result<(), NotAsked> {
        let open = match ask {
            Ask::Listing => {
                for (part, command) in
                    (0u64..).zip([listing::sessions(), listing::windows(), listing::panes()])
                {
                    client.send(tag.0 * PARTS + part, &command)?;
                }
                Open::Listing([const { None }; 3])
            }
            Ask::Habits(pane) => {
                for (part, command) in (0u64..).zip(settings::questions(*pane)) {
                    client.send(tag.0 * PARTS + part, &command)?;
                }
                Open::Habits([const { None }; 7])
            }
            Ask::Ping => {
                client.send(
                    tag.0 * PARTS,
                    &tmux_control::Command::new("display-message").args(["-p", "here"]),
                )?;
                Open::Order
            }
            Ask::Pane(pane) => {
                client.send(tag.0 * PARTS, &listing::pane(*pane))?;
                Open::Pane
            }
            Ask::Nudge { by_child: false } => {
                // tmux collects every dead child when it is told of one; it is told once more
                if let Some(server) = &client.identity().server
                    && let Err(error) = process::signal(server, process::Signal::CHILD)
                {
                    tracing::info!(%error, "the server is not told of its children");
                }
                client.send(
                    tag.0 * PARTS,
                    &tmux_control::Command::new("display-message").args(["-p", "here"]),
                )?;
                Open::Order
            }
            Ask::Nudge { by_child: true } => {
                // not waited for: the same fault (R9) can lose this child's end, and a client that waits hears nothing more
                client.send(tag.0 * PARTS, &tmux_control::Command::new("run-shell").args(["-b", "true"]))?;
                Open::Order
            }
            Ask::Stamp { .. }
            | Ask::Unstamp { .. }
            | Ask::KeepDead { .. }
            | Ask::UnkeepDead { .. }
            | Ask::UnstampFrozen { .. }
            | Ask::StampFrozen { .. }
            | Ask::RespawnStandin { .. }
            | Ask::KillDead { .. } => {
                let dispatch = act(client.identity(), program, ask)?.printed();
                client.dispatch(tag.0 * PARTS, &dispatch)?;
                Open::Act(Box::new(dispatch))
            }
            Ask::ExpelWindow { window, to, selected } => {
                let own = client.identity().session;
                client.send(tag.0 * PARTS, &guarded::move_window_out(own, *window, *to, *selected))?;
                Open::Order
            }
            Ask::ExpelPane { pane, to, selected } => {
                client.send(tag.0 * PARTS, &guarded::move_pane_out(*pane, *to, *selected))?;
                Open::Order
            }
            Ask::Clients => {
                client.send(tag.0 * PARTS, &say::clients())?;
                Open::Clients
            }
            Ask::Lookers => {
                client.send(tag.0 * PARTS, &say::lookers())?;
                Open::Lookers
            }
            Ask::Titles => {
                let command = tmux_control::Command::new("display-message").args(["-p", TITLES_FORMAT]);
                client.send(tag.0 * PARTS, &command)?;
                Open::Titles
            }
            Ask::Say { client: to, text, .. } => {
                client.send(tag.0 * PARTS, &say::line(to, text))?;
                Open::Order
            }
            Ask::ExpelClient { client: guest, to } => {
                client.send(tag.0 * PARTS, &guarded::switch_client_out(guest, *to))?;
                Open::Order
            }
        };
        self.open.insert(tag, open);
        Ok(())
    }

    /// Takes a reply; gives the answer once it is whole.
    pub(super) fn take(&mut self, number: u64, reply: Reply) -> Option<(Tag, Answer)> {
        let tag = Tag(number / PARTS);
        let part = usize::try_from(number % PARTS).ok()?;
        let whole = match self.open.get_mut(&tag)? {
            Open::Listing(replies) => {
                *replies.get_mut(part)? = Some(reply);
                replies.iter().all(Option::is_some)
            }
            Open::Habits(replies) => {
                *replies.get_mut(part)? = Some(reply);
                replies.iter().all(Option::is_some)
            }
            Open::Act(dispatch) => {
                let answer = acted(dispatch.outcome(reply));
                self.open.remove(&tag);
                return Some((tag, answer));
            }
            Open::Pane => {
                self.open.remove(&tag);
                return Some((tag, shown(reply)));
            }
            Open::Clients => {
                self.open.remove(&tag);
                let answer = match reply {
                    Ok(rows) => Answer::Clients(say::users(&rows)),
                    Err(error) => Answer::Failed(error.to_string()),
                };
                return Some((tag, answer));
            }
            Open::Lookers => {
                self.open.remove(&tag);
                let answer = match reply {
                    Ok(rows) => Answer::Lookers(say::shown(&rows)),
                    Err(error) => Answer::Failed(error.to_string()),
                };
                return Some((tag, answer));
            }
            Open::Titles => {
                self.open.remove(&tag);
                let answer = match reply {
                    Ok(line) => Answer::Titles(titles(line.strip_suffix(b"\n").unwrap_or(&line))),
                    Err(error) => Answer::Failed(error.to_string()),
                };
                return Some((tag, answer));
            }
            Open::Order => {
                self.open.remove(&tag);
                return Some((
                    tag,
                    match reply {
                        Ok(_) => Answer::Done,
                        Err(error) => Answer::Failed(error.to_string()),
                    },
                ));
            }
        };
        if !whole {
            return None;
        }
        let answer = match self.open.remove(&tag)? {
            Open::Listing(replies) => listed(replies),
            Open::Habits(replies) => habits(replies),
            Open::Act(_) | Open::Pane | Open::Clients | Open::Lookers | Open::Titles | Open::Order => {
                return None;
            }
        };
        Some((tag, answer))
    }
}

fn listed(replies: [Option<Reply>; 3]) -> Answer {
    let [Some(Ok(sessions)), Some(Ok(windows)), Some(Ok(panes))] = replies else {
        return Answer::Failed("a listing was refused".into());
    };
    match Snapshot::parse(&sessions, &windows, &panes) {
        Ok(snapshot) => Answer::Listing(snapshot),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

/// One pane's row; that there is no such pane is an answer too.
fn shown(reply: Reply) -> Answer {
    match reply {
        Ok(rows) => match listing::pane_row(&rows) {
            Ok(row) => Answer::Pane(Some(row)),
            Err(error) => Answer::Failed(error.to_string()),
        },
        Err(ReplyError::Refused(words)) if words.starts_with(b"can't find pane") => Answer::Pane(None),
        Err(error) => Answer::Failed(error.to_string()),
    }
}

fn habits(replies: [Option<Reply>; 7]) -> Answer {
    let mut whole = replies.map(|reply| reply.unwrap_or(Err(ReplyError::Unanswered)));
    let Some(seen) = settings::read(&whole) else {
        let why = whole.iter_mut().find_map(|reply| reply.as_ref().err().map(ToString::to_string));
        return Answer::Failed(why.unwrap_or_else(|| "an answer that is not understood".into()));
    };
    Answer::Habits(Habits {
        hooks: seen.hooked,
        keeps: seen.inherited != RemainOnExit::Off,
        own: seen.own.map(|own| own != RemainOnExit::Off),
    })
}

fn acted(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Done => Answer::Done,
        Outcome::NotMet => Answer::NotDone,
        Outcome::Refused(words) => Answer::Failed(words.to_string()),
        Outcome::Unknown => Answer::Failed("no proof that it was done".into()),
    }
}

/// The guarded act of an order; `program` is this one, for a stand-in.
fn act(identity: &Identity, program: &Path, ask: &Ask) -> Result<Dispatch, BadValue> {
    let guard = |pane| Guard::new(pane, Epoch::from(identity));
    let token = Token::random()?;
    match ask {
        Ask::Stamp { pane, pid, record } => {
            guarded::set(guard(*pane).process(*pid), PaneOption::Record, &record.to_string(), token)
        }
        Ask::Unstamp { pane, record } => {
            let guard = guard(*pane).stamped(PaneOption::Record, *record);
            Ok(guarded::unset(guard, PaneOption::Record, token))
        }
        Ask::KeepDead { pane, record } => {
            let guard = guard(*pane).stamped(PaneOption::Record, *record);
            Ok(guarded::keep_dead(guard, token))
        }
        Ask::UnkeepDead { pane, record } => {
            let guard = guard(*pane).stamped(PaneOption::Record, *record);
            Ok(guarded::keep_dead_no_more(guard, token))
        }
        Ask::UnstampFrozen { pane, record } => {
            let guard = guard(*pane).stamped(PaneOption::Frozen, *record);
            Ok(guarded::unset(guard, PaneOption::Frozen, token))
        }
        Ask::StampFrozen { pane, record } => {
            let guard = guard(*pane).stamped(PaneOption::Record, *record).dead();
            Ok(guarded::stamp_frozen(guard, *record, token))
        }
        Ask::RespawnStandin { pane, record, over } => {
            Ok(guarded::respawn_standin(guard(*pane), *record, *over, program, token))
        }
        Ask::KillDead { pane, record } => Ok(guarded::kill_dead_pane(guard(*pane), *record, token)),
        Ask::Listing
        | Ask::Ping
        | Ask::Pane(_)
        | Ask::Nudge { .. }
        | Ask::Habits(_)
        | Ask::Clients
        | Ask::Lookers
        | Ask::Titles
        | Ask::Say { .. }
        | Ask::ExpelWindow { .. }
        | Ask::ExpelPane { .. }
        | Ask::ExpelClient { .. } => Err(BadValue::NoProgram),
    }
}
