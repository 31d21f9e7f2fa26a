//! Recovery of a fleet: lost agents back in their places and in their conversations, each once.
//!
//! One such process works at a time; another waits for it, and finds what is left. What is done, in this order: what
//! cannot come back is told apart, without a write; agents that outlived their server are ended; each remaining one gets its
//! stand-in in its place; then the restores take those panes, one after the other. A kill between any two leaves records
//! that the next one goes on with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::host;
use super::identity;
use super::outlive::{Outlived, see_out};
use super::perform::World;
use super::place::{self, Ground};
use crate::coordinator::{End, Outcome, Step, Told};
use crate::history::{Environment, Located};
use crate::process::ProcessId;
use crate::provider::Recorded;
use crate::record::{Record, RecordId, Stamp, State, is_lease_free, outlived};
use crate::store::make_private;
use crate::supervisor::recovery::{Attempt, AttemptEnd, Book, Choice, Policies, choose};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Order {
    /// The records, in the order they come back.
    pub records: Vec<RecordId>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Nobody asked for it: only what these policies still bring back by itself, once it is this process's turn.
    pub unasked: Option<Policies>,
}

/// One recovery under way.
struct Recovery<'a> {
    world: &'a World,
    me: &'a ProcessId,
    book: Book,
    tell: &'a mut dyn FnMut(Told),
    clean: bool,
}

/// Brings the records back that are lost; `tell` hears each step and each end. Whether all is as asked.
///
/// # Errors
/// The lock of recoveries cannot be had.
pub async fn run(
    world: &World,
    me: &ProcessId,
    order: Order,
    tell: &mut dyn FnMut(Told),
) -> io::Result<bool> {
    let lock = if order.dry_run { None } else { Some(alone(world).await?) };
    let mut recovery = Recovery { world, me, book: world.store.book(), tell, clean: true };
    let ready = recovery.ready(&order).await;
    if !order.dry_run && !ready.is_empty() {
        let placed = recovery.place(ready).await;
        recovery.restore(&placed).await;
    }
    drop(lock);
    Ok(recovery.clean)
}

/// The lock that one recovery at a time holds; the kernel gives it back.
async fn alone(world: &World) -> io::Result<File> {
    let path = world.store.paths().recover_lock();
    make_private(&world.store.paths().state).map_err(io::Error::other)?;
    let waited = tokio::task::spawn_blocking(move || {
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    });
    waited.await.map_err(io::Error::other)?
}

impl Recovery<'_> {
    /// The records that can come back now; the others are told, with their reasons.
    async fn ready(&mut self, order: &Order) -> Vec<Record> {
        let records = match self.world.store.read() {
            Ok(snapshot) => snapshot.records.clone(),
            Err(error) => {
                for id in &order.records {
                    self.end(*id, None, Outcome::new(End::Failed, "no_store", error.to_string()));
                }
                return Vec::new();
            }
        };
        let mut lost = Vec::new();
        for id in &order.records {
            match records.get(*id).map(AsRef::as_ref) {
                None => self.end(*id, None, Outcome::new(End::Refused, "no_such_record", "")),
                Some(record) if !is_lease_free(record, &self.world.system.facts()) => {
                    self.end(
                        *id,
                        None,
                        Outcome::new(End::Refused, "lease_held", "another operation holds it"),
                    );
                }
                Some(record) => match &record.state {
                    State::Frozen { lost: Some(_) } => match self.unwanted(order, record) {
                        // another was tried while this process waited for its turn
                        Some(why) => self.end(*id, None, Outcome::new(End::Refused, "offered", why)),
                        None => lost.push(record.clone()),
                    },
                    State::Frozen { lost: None }
                    | State::Live
                    | State::Freezing
                    | State::Restoring { .. }
                    | State::Aborting { .. } => {
                        self.end(
                            *id,
                            None,
                            Outcome::new(End::Refused, "not_lost", record.state.name().word()),
                        );
                    }
                },
            }
        }
        if !order.dry_run {
            self.begin(&lost);
        }
        let mut ready = Vec::new();
        for record in lost {
            let refusal = refusal(self.world, &record);
            let outlived = self.outlived(&record, refusal.is_none(), order.dry_run).await;
            match refusal.or(outlived) {
                Some(refusal) => self.end(record.id, Some(&record), refusal),
                None if order.dry_run => {
                    let command = command(self.world, &record);
                    self.end(record.id, None, Outcome::new(End::Planned, "recover", command));
                }
                None => ready.push(record),
            }
        }
        ready
    }

    /// Why it is no longer to come back unasked, where nobody asked.
    fn unwanted(&self, order: &Order, record: &Record) -> Option<String> {
        match choose(record, order.unasked?, self.book.get(&record.id))? {
            Choice::Recover => None,
            Choice::Offer(why) => Some(why.words()),
            Choice::Keep => Some("it is to stay as it is".to_owned()),
        }
    }

    /// Writes down that these are begun, before anything is done.
    fn begin(&mut self, records: &[Record]) {
        for record in records {
            let Some(lost) = record.state.lost() else { continue };
            let before = self.book.get(&record.id).filter(|attempt| attempt.lost_at == lost.at);
            let attempt = before.cloned().map_or_else(|| Attempt::first(lost.at), Attempt::again);
            self.book.insert(record.id, Attempt { at: self.now(), ..attempt });
        }
        self.write();
    }

    /// Sees to it that the agent of before is gone; the refusal if it is not.
    async fn outlived(&self, record: &Record, safe: bool, dry_run: bool) -> Option<Outcome> {
        let agent = outlived(record, &self.world.system.facts())?.clone();
        let pid = agent.pid;
        let safe = safe && !dry_run;
        let seen = tokio::task::spawn_blocking(move || see_out(&agent, safe)).await.ok()?;
        match seen {
            Outlived::Gone => None,
            Outlived::Spared if dry_run => None,
            Outlived::Spared | Outlived::Survivor => Some(
                Outcome::new(
                    End::Refused,
                    &format!("survivor:{pid}"),
                    "its process runs on without a server",
                )
                .hint("end it by hand, then run `ait recover`"),
            ),
        }
    }

    /// Places the stand-ins; gives the records that are to be restored, in their order.
    async fn place(&mut self, records: Vec<Record>) -> Vec<Record> {
        let mut servers: BTreeMap<PathBuf, Vec<Record>> = BTreeMap::new();
        for record in records {
            let socket = record.ait.server.as_ref().map(|epoch| PathBuf::from(&epoch.socket));
            servers.entry(socket.unwrap_or_default()).or_default().push(record);
        }
        let mut placed = Vec::new();
        for (socket, records) in servers {
            if socket == Path::new("") {
                // the restore says where it goes
                placed.extend(records);
                continue;
            }
            let World { store, system, program, .. } = self.world;
            let ground = Ground { store, system, program, me: self.me };
            match place::place(&ground, &socket, &records).await {
                Ok(done) => {
                    for said in done.said {
                        let Some(first) = records.first() else { continue };
                        let step = Step::new("placed_differently", said);
                        (self.tell)(Told::Step { record: first.id, step });
                    }
                    let (taken, mine) =
                        records.into_iter().partition::<Vec<_>, _>(|one| done.taken.contains(&one.id));
                    for record in taken {
                        let why = "another operation was faster";
                        self.end(record.id, None, Outcome::new(End::Refused, "lease_held", why));
                    }
                    placed.extend(mine);
                }
                // nothing was launched: it is tried again
                Err(error) => {
                    for record in records {
                        let outcome = Outcome::new(End::Failed, "not_placed", error.to_string());
                        self.end(record.id, None, outcome);
                    }
                }
            }
        }
        placed
    }

    /// Has the agents restored, in a process of its own that goes on should this one end.
    async fn restore(&mut self, records: &[Record]) {
        if records.is_empty() {
            return;
        }
        let mut arguments: Vec<OsString> = ["restore", "--mode", "resume"].map(OsString::from).to_vec();
        arguments.extend(records.iter().map(|record| record.id.to_string().into()));
        let mut left: BTreeMap<RecordId, &Record> =
            records.iter().map(|record| (record.id, record)).collect();
        match host::spawn(&self.world.program, arguments) {
            Ok(mut hosted) => {
                while let Some(told) = hosted.next().await {
                    match told {
                        Told::Outcome { record, outcome } => {
                            let known = left.remove(&record);
                            self.end(record, known, outcome);
                        }
                        step @ Told::Step { .. } => (self.tell)(step),
                    }
                }
                // reaped; what it says is told already
                let _ = hosted.ended().await;
            }
            Err(error) => tracing::error!(%error, "restores cannot be started"),
        }
        for id in left.into_keys() {
            self.end(id, None, Outcome::new(End::Left, "cut_short", "its restore ended without a word"));
        }
    }

    /// One record's recovery is over. Where `of` is given, that is written down for good.
    fn end(&mut self, id: RecordId, of: Option<&Record>, outcome: Outcome) {
        self.clean &= matches!(outcome.end, End::Done | End::Planned);
        let at = self.now();
        if of.is_some()
            && let Some(attempt) = self.book.get_mut(&id)
        {
            attempt.at = at;
            match outcome.end {
                End::Done => attempt.end = AttemptEnd::Recovered,
                // somebody else is at it, or nothing was begun for this one
                End::Refused | End::Failed
                    if matches!(outcome.word.as_str(), "lease_held" | "stopped" | "not_begun") => {}
                End::Refused | End::Failed => attempt.end = AttemptEnd::Failed,
                End::Planned | End::Left => {}
            }
            attempt.why = match outcome.detail.as_str() {
                "" => outcome.word.clone(),
                detail => format!("{}: {detail}", outcome.word),
            };
            self.write();
        }
        (self.tell)(Told::Outcome { record: id, outcome });
    }

    fn write(&mut self) {
        if let Err(error) = self.world.store.write_book(&mut self.book) {
            tracing::warn!(%error, "what was tried is not kept");
        }
    }

    fn now(&self) -> Stamp {
        self.world.system.facts().now
    }
}

/// Why a record cannot come back, found without a write.
fn refusal(world: &World, record: &Record) -> Option<Outcome> {
    let refused = |word: &str, seen: String| Some(Outcome::new(End::Refused, word, seen));
    let ours = &record.ait;
    let argv = ours.argv.as_deref().unwrap_or_default();
    let recorded = Recorded { argv, bin: ours.agent_bin.as_deref().unwrap_or_default() };
    if let Err(why) = world.catalog.resume_argv(&record.agent_kind, &record.codeagent_session_id, recorded) {
        return refused(&why.word(), why.to_string());
    }
    let cwd = ours.cwd.as_deref().unwrap_or(&record.root);
    if !Path::new(cwd).is_dir() {
        return refused("cwd_missing", format!("the folder {cwd} is gone"));
    }
    let mut environment = Environment::recorded(&ours.env.clone().unwrap_or_default());
    if let Some(home) = std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        environment = environment.with_home(Path::new(&home));
    } else if let Ok(Some(user)) = nix::unistd::User::from_uid(nix::unistd::getuid()) {
        environment = environment.with_home(&user.dir);
    }
    match identity::locate(&world.catalog, record, Path::new(cwd), &environment) {
        Located::Present { .. } => None,
        Located::Missing { why } => refused("transcript_missing", why.word().to_owned()),
        Located::Ambiguous { .. } => {
            refused("transcript_ambiguous", "several files say they are it".to_owned())
        }
        Located::Unknown { why } => refused("transcript_unknown", why.to_string()),
    }
}

/// The command that would run, for a reader.
fn command(world: &World, record: &Record) -> String {
    let argv = record.ait.argv.as_deref().unwrap_or_default();
    let recorded = Recorded { argv, bin: record.ait.agent_bin.as_deref().unwrap_or_default() };
    let words = world.catalog.resume_argv(&record.agent_kind, &record.codeagent_session_id, recorded);
    let words = words.unwrap_or_default();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}
