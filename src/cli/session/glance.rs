//! `ait glance`: the last lines of a session's screen, and how it is.

use clap::Args as ClapArgs;
use serde::Serialize;
use serde_json::Value;

use super::envelope::{self, Answer, Trouble};
use super::look::Status;
use super::view::{Ours, Resume, View};
use super::{Meant, screen, view_at};
use crate::cli::{Exit, Failure, block_on_any, print};

/// Show the last lines of a session's screen, and how it is.
///
/// It changes nothing, and says nothing of a session that is stopped but that.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  ait glance review --tail 10")]
pub(crate) struct Args {
    #[command(flatten)]
    one: Meant,
    /// How many lines, at most 10000
    #[arg(long, value_name = "LINES", default_value_t = 40, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    tail: u32,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("glance", &args.one.given, || glance(&args))
}

fn glance(args: &Args) -> Result<Answer, Trouble> {
    let (store, found) = args.one.found()?;
    let (look, screen) = block_on_any(screen::glance(&found, args.tail))?;
    let view = view_at(&store, &found, &args.one.given, &look)?;
    let tail = match (view.status, screen) {
        (Status::Running, Some(screen)) => screen::last(&screen, args.tail as usize),
        (Status::Running, None) => {
            let screen = block_on_any(screen::capture(&found, args.tail))??;
            screen::last(&screen, args.tail as usize)
        }
        (Status::Stopped | Status::Unknown, _) => String::new(),
    };
    let shown = |text: &str| print::shown(text.as_bytes());
    let text = format!("{} {} [{}]\n{tail}", shown(&view.id), shown(&view.agent), view.status.word());
    Answer::new(Glanced::new(&view, &tail), text)
}

/// What is told of it: its view without what only starts or finds it, and its screen.
#[derive(Serialize)]
struct Glanced<'a> {
    id: &'a str,
    agent: &'a str,
    title: Option<&'a str>,
    tmux_session: &'a str,
    status: Status,
    resumable: bool,
    repo_name: Option<&'a str>,
    tail: &'a str,
    created_at: &'a str,
    updated_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_resume: Option<&'a Resume>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_terminal_activity_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime_started_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_state: Option<&'a Value>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    ours: Option<&'a Ours>,
}

impl<'a> Glanced<'a> {
    fn new(view: &'a View, tail: &'a str) -> Self {
        Self {
            id: &view.id,
            agent: &view.agent,
            title: view.title.as_deref(),
            tmux_session: &view.tmux_session,
            status: view.status,
            resumable: view.resumable,
            repo_name: view.repo_name.as_deref(),
            tail,
            created_at: &view.created_at,
            updated_at: &view.updated_at,
            provider_resume: view.provider_resume.as_ref(),
            last_terminal_activity_at: view.last_terminal_activity_at.as_deref(),
            runtime_started_at: view.runtime_started_at.as_deref(),
            turn_state: view.turn_state.as_ref(),
            ours: view.ours.as_ref(),
        }
    }
}
