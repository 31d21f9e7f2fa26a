//! `ait glance`: the last lines of a session's screen, and how it is.

use clap::Args as ClapArgs;
use serde_json::Value;

use super::envelope::{self, Answer, Trouble};
use super::look::Status;
use super::{Meant, screen, view_of};
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
    let (paths, found) = args.one.found()?;
    let view = view_of(&paths, &found, &args.one.given)?;
    let tail = match view.status {
        Status::Running => {
            let shown = block_on_any(screen::capture(&found, args.tail))??;
            screen::last(&shown, args.tail as usize)
        }
        Status::Stopped | Status::Unknown => String::new(),
    };
    let shown = |text: &str| print::shown(text.as_bytes());
    let text = format!("{} {} [{}]\n{tail}", shown(&view.id), shown(&view.agent), view.status.word());
    let mut answer = Answer::new(&view, text)?;
    if let Value::Object(data) = &mut answer.data {
        for without in ["cwd", "attach_command", "ssh_attach_command", "mode", "prompt_file", "log_file"] {
            data.remove(without);
        }
        data.insert("tail".to_owned(), tail.into());
    }
    Ok(answer)
}
