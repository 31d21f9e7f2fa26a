//! `ait start`: a new agent in a window of its project, its record first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::address::Book;
use super::begin::{self, Begin};
use super::envelope::{self, Answer, Trouble};
use super::face::Face;
use super::{Given, one_in, paths};
use crate::cli::{Exit, Failure, block_on_any, print};
use crate::lifecycle::perform::Stops;
use crate::lifecycle::start::{self, Plan};
use crate::process;
use crate::record::{Mode, RecordId, Session};
use crate::store::Store;

/// How long an agent has to stand before it counts as such anyway.
const GRACE: Duration = Duration::from_secs(20);

/// Start an agent in a window of its project, and give it a prompt.
///
/// Its record is written before its process is started, and what fails is taken back. The agent is started by its words, without a
/// shell; the prompt is pasted once its prompt line is open, and stands in no command line and no environment.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait start --agent claude --title review --prompt 'Read the last commit'\n  \
                        git diff | ait start --agent codex --prompt-stdin --format json\n  \
                        ait start --agent claude --agent-arg=--model --agent-arg=opus"
)]
pub(crate) struct Args {
    #[command(flatten)]
    begin: Begin,
    /// Taken as the earlier command line has it, and without effect: the prompt is pasted once its prompt line is open
    #[arg(long, value_name = "MS", default_value_t = 1200, hide = true)]
    paste_delay_ms: u64,
    #[command(flatten)]
    given: Given,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("start", &args.given, || start(&args))
}

fn start(args: &Args) -> Result<Answer, Trouble> {
    started(begin(&args.begin, &args.given, Mode::Interactive)?, &args.given)
}

/// A session that was begun.
pub(super) struct Begun {
    pub(super) store: Store,
    pub(super) record: RecordId,
    /// What is said besides.
    pub(super) warnings: Vec<String>,
    /// What told this process to stop since it began.
    pub(super) stops: Stops,
}

/// Begins a session.
pub(super) fn begin(begin: &Begin, given: &Given, mode: Mode) -> Result<Begun, Trouble> {
    given.here.host()?;
    begin.refuse_agent()?;
    begin.refuse_name()?;
    begin.refuse_title()?;
    let cwd = begin.folder()?;
    let prompt = begin.prompt()?;
    if mode == Mode::Run {
        begin.refuse_run(prompt.as_deref())?;
    }
    let world = begin::world(Store::open(paths()?))?;
    let state_dir = given.here.begun_in(world.store.paths())?;
    begin.refuse_reserved()?;
    block_on_any(async {
        let mut stops = Stops::new().map_err(Failure::from)?;
        let me = process::me().map_err(Failure::from)?;
        let session = Session {
            name: begin.id.clone(),
            title: begin.title.clone().filter(|title| !title.trim().is_empty()),
            prompt: prompt.is_some(),
            state_dir,
            mode,
            ..Session::default()
        };
        let plan = plan(begin, &world, cwd, session, prompt).await?;
        let started = start::start(&world, &me, &mut stops, &plan).await.map_err(begin::trouble)?;
        Ok(Begun { store: world.store, record: started.record, warnings: started.warnings, stops })
    })?
}

/// What is said of a session that was begun.
pub(super) fn started(begun: Begun, given: &Given) -> Result<Answer, Trouble> {
    let view = one_in(&begun.store, &begun.record.to_string(), given)?;
    let shown = |text: &str| print::shown(text.as_bytes());
    let mut text = format!("started {} session {}\n", shown(&view.agent), shown(&view.id));
    text.push_str(&format!("tmux: {}\nattach: {}\n", shown(&view.tmux_session), view.attach_command));
    if let Some(ssh) = &view.ssh_attach_command {
        text.push_str(&format!("ssh: {ssh}\n"));
    }
    text.push_str(&format!("delete: {} delete {}\n", Face::ours().program(), shown(&view.id)));
    let mut answer = Answer::new(&view, text)?;
    answer.warnings = begun.warnings;
    Ok(answer)
}

async fn plan(
    begin: &Begin,
    world: &crate::lifecycle::perform::World,
    cwd: PathBuf,
    session: Session,
    prompt: Option<Vec<u8>>,
) -> Result<Plan, Trouble> {
    let store: &Store = &world.store;
    let book = Book::open(store)?;
    let face = Face::ours();
    let mut session = session;
    if face == Face::AgentSession && session.name.is_none() {
        session.name = Some(begin::free_name(begin, &book)?);
    }
    let titled = session.title.clone().filter(|_| face == Face::Ait);
    let unique: Vec<String> = session.name.clone().into_iter().chain(titled).collect();
    if let Some(taken) = unique.iter().find(|name| book.has_name(name)) {
        return Err(begin::taken(taken));
    }
    let kind = begin.agent.clone();
    let talks = session.mode == Mode::Interactive;
    let chosen = (talks && world.catalog.chooses_id(&kind)).then(|| uuid::Uuid::new_v4().to_string());
    let own = match session.mode {
        Mode::Interactive => begin.argv(&world.catalog, chosen.as_deref(), session.title.as_deref(), &cwd)?,
        Mode::Run => begin.argv_of_run(&cwd),
    };
    let argv = match session.mode {
        Mode::Interactive => own.clone(),
        Mode::Run => begin::below_runner(&world.program, &own),
    };
    let words: Vec<Vec<u8>> = own.iter().map(|word| word.clone().into_bytes()).collect();
    let kept = world.catalog.without_text(&kind, &words);
    let env: BTreeMap<String, String> = world
        .catalog
        .kept_variables(&kind)
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect();
    if let Some(program) = own.first() {
        begin.refuse_missing(program, env.get("PATH"))?;
    }
    let mut place = begin.place(store, &cwd, begin::window(&session, &kind)).await?;
    if let (Face::AgentSession, Some(name)) = (face, &session.name) {
        (place.session, place.asked) = (begin::own_session(&kind, name), true);
    }
    Ok(Plan {
        argv,
        kept: kept.into_iter().map(|word| String::from_utf8_lossy(&word).into_owned()).collect(),
        session_id: chosen.unwrap_or_default(),
        cwd: cwd.to_string_lossy().into_owned(),
        root: place.root,
        window: place.window,
        tmux_session: place.session,
        asked: place.asked,
        server: place.server,
        index: place.index,
        env,
        agent_bin: begin.binary().map(|path| path.to_string_lossy().into_owned()),
        session,
        unique,
        prompt,
        kind,
        grace: GRACE,
    })
}
