//! `ait show`: all that is known of one session.

use clap::Args as ClapArgs;

use super::Meant;
use super::envelope::{self, Answer};
use super::view::View;
use crate::cli::{Exit, Failure, print};

/// Show all that is known of one session.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Example:\n  ait show review --format json | jq .data.status\n\nA session is named by its id, \
                        a beginning of it that no other has, or the name or title it was given."
)]
pub(crate) struct Args {
    #[command(flatten)]
    one: Meant,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("show", &args.one.given, || {
        let view = args.one.view()?;
        Answer::new(&view, text(&view))
    })
}

fn text(view: &View) -> String {
    let value = serde_json::to_value(view).unwrap_or_default();
    let turn = value["turn_state"]["phase"].as_str().unwrap_or("-").to_owned();
    let mut lines = vec![("turn", turn)];
    for name in [
        "id",
        "name",
        "title",
        "agent",
        "mode",
        "status",
        "state",
        "resumable",
        "cwd",
        "tmux_session",
        "prompt_file",
        "log_file",
        "exit_status",
        "ended",
        "created_at",
        "updated_at",
        "attach_command",
        "ssh_attach_command",
    ] {
        match &value[name] {
            serde_json::Value::Null => {}
            serde_json::Value::String(text) => lines.push((name, text.clone())),
            other => lines.push((name, other.to_string())),
        }
    }
    lines.rotate_left(1);
    lines.iter().map(|(name, text)| format!("{name}: {}\n", print::shown(text.as_bytes()))).collect()
}
