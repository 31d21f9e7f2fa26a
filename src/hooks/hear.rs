//! One event of a provider's hook: heard, written to its agent's record, or kept for later. It prints nothing and never fails:
//! what goes wrong here must not reach an agent's screen.
//!
//! Most events change no record: those read one record's lines and write one small file. Only an id that is new takes the
//! store's lock, only an agent without a record asks tmux.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::line::{Line, Speaker, speaker};
use super::question::Question;
use super::{birth, log, payload, shared};
use crate::config::Config;
use crate::provider::{Catalog, Meaning, Turn as Said};
use crate::record::report::{Known, Names, OfRestore, Report, Settled, record_of};
use crate::record::{Facts, Record, RecordId, Stamp};
use crate::store::turns::Diagnostic;
use crate::store::{HOOK_PATIENCE, Heard, Paths, Store, System, spool, turns};
use crate::supervisor::notify::note::Reason;
use crate::turn::What;

/// The longest a hook may take, whatever happens to it.
const DEADLINE: Duration = Duration::from_secs(3);

/// Hears an event of the provider `provider`, its payload on standard input. Its name is `event`, else the payload's own.
pub fn hear(provider: &str, event: Option<&str>) {
    // whatever goes wrong is nothing an agent's screen should show
    std::panic::set_hook(Box::new(|_| {}));
    let (ending, ended) = mpsc::channel::<()>();
    let (provider, event) = (provider.to_owned(), event.map(str::to_owned));
    let hearing = std::thread::Builder::new().spawn(move || {
        hear_all(&provider, event);
        drop(ending);
    });
    if hearing.is_ok() {
        // a disk that hangs, a paused server: the agent goes on all the same
        let _ = ended.recv_timeout(DEADLINE);
    }
}

fn hear_all(provider: &str, event: Option<String>) {
    let (payload, fault) = payload::read();
    let own = || {
        ["hook_event_name", "event"].iter().find_map(|name| payload.get(name)?.as_str().map(str::to_owned))
    };
    let event = event.or_else(own).unwrap_or_default();
    let event = event.as_str();
    let Ok(paths) = Paths::from_env() else { return };
    // settings that are broken are no business of an agent's; those that are built in are known without them
    let config = Config::load().ok().map(|loaded| loaded.config);
    let catalog = config.as_ref().and_then(|config| config.catalog().ok()).unwrap_or_default();
    let wanted = config.is_some_and(|config| config.notify.reasons().contains(&Reason::NeedsInput));
    let question = if wanted { Question::of(&payload) } else { None };
    if !catalog.kinds().any(|kind| kind == provider) {
        return log::line(&paths, provider, event, "no such provider");
    }
    let system = System::here();
    let store = Store::open(paths.clone());
    let (line, server) = match speaker(provider, &catalog) {
        Speaker::Agent(line) => (line, None),
        Speaker::Shared(server) => {
            let session_id = catalog.hook_meaning(provider, event, &payload).session_id.unwrap_or_default();
            let cwd = payload.get("cwd").and_then(Value::as_str).unwrap_or_default();
            let snapshot = store.read().ok();
            let record_of = |line: &Line| {
                let records = &snapshot.as_ref()?.records;
                record_of(&line.processes, system.boot_id(), records.iter()).cloned()
            };
            match shared::line(&server, &session_id, cwd, &catalog, record_of) {
                Ok(line) => (line, Some(server)),
                Err(why) => return log::line(&paths, provider, event, &format!("ignored: {why}")),
            }
        }
        Speaker::Elsewhere => return,
        Speaker::Nobody => return log::line(&paths, provider, event, "ignored: no agent of it runs this"),
        Speaker::Other(other) => {
            let why = format!("ignored: it is run by {other}");
            return log::line(&paths, provider, event, &why);
        }
        Speaker::Prints => {
            return log::line(&paths, provider, event, "ignored: it prints one answer and leaves");
        }
        Speaker::Nested { below } => {
            let why = format!("ignored: its agent runs below another one (pid {below})");
            return log::line(&paths, provider, event, &why);
        }
    };
    // its environment is that of whoever started it: the agent's own counts
    let stands_for = server.as_ref().map(|_| line.agent.pid);
    let mut report = report(&catalog, provider, event, &payload, line, &system);
    if server.is_some() {
        report.restore = None;
    }
    Hearing { store, system, catalog, report, stands_for, fault, question }.take();
}

fn report(
    catalog: &Catalog,
    kind: &str,
    event: &str,
    payload: &Value,
    line: Line,
    system: &System,
) -> Report {
    let mut meaning = catalog.hook_meaning(kind, event, payload);
    for id in [&mut meaning.prompt_id, &mut meaning.tool_use, &mut meaning.tool] {
        *id = id.take().filter(|id| payload::is_id(id));
    }
    let fits = |id: &&str| payload::is_id(id) && catalog.fits(kind, id);
    let session_id = meaning.session_id.as_deref().filter(fits).unwrap_or_default();
    let transcript =
        ["transcript_path", "transcriptPath"].iter().find_map(|name| payload.get(name)?.as_str());
    let now = jiff::Timestamp::now();
    let at = Stamp::from_unix(now.as_second());
    let id = format!("{}-{}-{event}", now.as_nanosecond(), std::process::id());
    Report {
        provider: kind.to_owned(),
        event: event.to_owned(),
        at,
        boot_id: system.boot_id().to_owned(),
        line: line.processes,
        agent: line.agent,
        session_id: session_id.to_owned(),
        transcript: transcript
            .filter(|path| path.starts_with('/') && path.len() < 4096 && !path.contains(char::is_control))
            .unwrap_or_default()
            .to_owned(),
        names: names(event, &meaning, session_id),
        known: None,
        restore: restore(),
        turn: meaning.event(event, id, now.into()),
        newborn: None,
    }
}

/// Events of a prompt that is handed in: it goes to the conversation that runs.
const PROMPTS: &[&str] = &["UserPromptSubmit", "userPromptSubmitted", "BeforeAgent", "pre_llm_call"];

fn names(event: &str, meaning: &Meaning, session_id: &str) -> Names {
    if session_id.is_empty() {
        Names::Nothing
    } else if meaning.binds.is_some() || (meaning.turn.is_some() && PROMPTS.contains(&event)) {
        Names::Now
    } else {
        match meaning.turn {
            Some(Said::Starting | Said::Working | Said::Waiting | Said::NeedsInput) => Names::IfBlank,
            // the conversation that ends may not be the one that runs by now
            Some(Said::Ended) | None => Names::Nothing,
        }
    }
}

/// The restore this agent was started by, as it says.
fn restore() -> Option<OfRestore> {
    let var = |name: &str| std::env::var(name).ok();
    let record = var("AITASK_RESTORE_RECORD")?.parse().ok()?;
    let nonce = var("AITASK_RESTORE_NONCE")?.parse().ok()?;
    Some(OfRestore { record, nonce, pane: None })
}

/// An event and all that is needed to take it.
struct Hearing {
    store: Store,
    system: System,
    catalog: Catalog,
    report: Report,
    /// The agent, where another process runs its hooks.
    stands_for: Option<i32>,
    /// What is wrong with the payload.
    fault: Option<&'static str>,
    /// What it asks, where somebody wants to be told.
    question: Option<Question>,
}

impl Hearing {
    fn take(mut self) {
        // a store that cannot be read is for later
        let record = self.store.record_of(&self.report).ok().flatten();
        if let Some(record) = &record {
            self.report.known = Some(Known { record: record.id, generation: record.ait.generation });
            let first = self.report.names != Names::Now || !spool::is_waiting(self.store.paths());
            if let Settled::Known(_) = self.report.of(record)
                && first
            {
                return self.tell_turn(record);
            }
        } else if !self.is_restored() {
            if self.report.names == Names::Nothing {
                return self.log("ignored: its agent has no record");
            }
            match birth::newborn(
                &self.store,
                &self.report,
                &self.catalog,
                self.stands_for,
                &self.system.facts(),
            ) {
                Ok(newborn) => self.report.newborn = Some(Box::new(newborn)),
                Err(birth::Unborn::No(why)) => return self.log(&format!("ignored: {why}")),
                Err(birth::Unborn::Unknown(why)) => return self.keep(&why),
            }
        }
        let mut heard = self.write();
        if let Ok(Heard::Unproven(_)) = heard
            && let Some(seen) =
                self.report.restore.as_ref().and_then(|restore| birth::attempt(&self.report, restore))
        {
            if let Some(restore) = &mut self.report.restore {
                restore.pane = Some(seen);
            }
            heard = self.write();
        }
        match heard {
            Ok(Heard::Record(id)) => self.tell(id),
            Ok(Heard::Refused(why)) => self.log(&format!("ignored: {why}")),
            Ok(Heard::Unknown) => self.keep("its agent has no record yet"),
            Ok(Heard::Unproven(_)) => self.keep("its restore has not said what it launched"),
            Err(why) => self.keep(&why),
        }
    }

    /// Whether the agent comes from a restore that still goes on.
    fn is_restored(&self) -> bool {
        self.report.restore.is_some()
            && matches!(
                self.with_records(|records, facts| self.report.settle(records, facts)),
                Some(Settled::Step(_) | Settled::Unproven(_))
            )
    }

    fn with_records<T>(&self, act: impl FnOnce(&crate::record::Records, &Facts<'_>) -> T) -> Option<T> {
        let snapshot = self.store.read().ok()?;
        Some(act(&snapshot.records, &self.system.facts()))
    }

    fn write(&self) -> Result<Heard, String> {
        let written =
            self.store.update(&self.system.facts(), HOOK_PATIENCE, |batch| batch.report(&self.report));
        written.map_err(|error| error.to_string())
    }

    /// Keeps what names a conversation; a turn that cannot be told now is over by then.
    fn keep(&self, why: &str) {
        if self.report.names == Names::Nothing {
            return self.log(&format!("ignored: {why}"));
        }
        let order = jiff::Timestamp::now().as_nanosecond().unsigned_abs();
        match spool::keep(self.store.paths(), &self.report, order) {
            Ok(_) => self.log(&format!("waits: {why}")),
            Err(error) => self.log(&format!("lost: {why}; {error}")),
        }
    }

    /// Tells the turn, unless it is one of a conversation that runs no more.
    fn tell_turn(&self, record: &Record) {
        let (paths, whose) = (self.store.paths(), turns::Whose::of(record));
        let told = match self.report.turn_of(record) {
            // what is not of a turn says nothing of how the hook is
            None if self.fault.is_none() => return,
            None => Ok(()),
            Some(event) => {
                // before its event: whoever hears of that knows the question
                if let (What::AttentionRequested { .. }, Some(question)) = (&event.what, &self.question) {
                    question.tell(&paths.files(), record.id);
                }
                turns::tell(paths, &whose, event).map(drop).map_err(|error| {
                    self.log(&format!("its turn is not told: {error}"));
                    error.code()
                })
            }
        };
        match self.fault.or(told.err()) {
            None => Diagnostic::clear(paths, record.id),
            Some(code) => {
                if let Err(error) = Diagnostic::write(paths, &whose, code, jiff::Timestamp::now().into()) {
                    self.log(&format!("{code}; {error}"));
                }
            }
        }
    }

    /// Tells the turn, and puts the conversation's id on the pane, and the record's where it is new.
    fn tell(&self, id: RecordId) {
        let snapshot = self.store.read().ok();
        let Some(record) = snapshot.as_ref().and_then(|snapshot| snapshot.records.get(id)) else { return };
        self.tell_turn(record);
        birth::tell_pane(record, self.report.newborn.is_some());
    }

    fn log(&self, what: &str) {
        log::line(self.store.paths(), &self.report.provider, &self.report.event, what);
    }
}
