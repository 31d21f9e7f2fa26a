//! The hook commands of a provider's settings: `/bin/sh -c COMMAND`, the event as JSON on standard input, one after the
//! other in the order they fire, beside the agent.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde_json::Value;

use super::ways::{Command, Event};
use crate::process::{Signal, await_death_within, identify, signal};

/// How long one hook may take before it is killed.
const HOOK: Duration = Duration::from_secs(60);

/// How long an agent that ends waits for its last hooks.
const LAST: Duration = Duration::from_millis(1500);

type Environment = Vec<(String, String)>;

/// Runs hooks in their order.
#[derive(Debug)]
pub(super) struct Hooks {
    queue: Sender<(Event, Environment)>,
    finished: Receiver<()>,
}

impl Hooks {
    /// A runner for these commands. The first event waits for `late`.
    pub(super) fn start(commands: Vec<Command>, late: Duration) -> Hooks {
        let (queue, events) = mpsc::channel::<(Event, Environment)>();
        let (done, finished) = mpsc::channel();
        std::thread::spawn(move || {
            // nobody ever sends here: a wait with an end
            let (_kept, never) = mpsc::channel::<()>();
            let mut late = Some(late);
            for (event, environment) in events {
                if let Some(late) = late.take() {
                    let _ = never.recv_timeout(late);
                }
                for command in commands.iter().filter(|command| is_for(command, &event)) {
                    run(&command.line, &event, &environment);
                }
            }
            let _ = done.send(());
        });
        Hooks { queue, finished }
    }

    /// Fires an event. Returns at once.
    pub(super) fn fire(&self, event: Event, environment: Environment) {
        let _ = self.queue.send((event, environment));
    }

    /// Waits for what was fired, as long as an ending agent does.
    pub(super) fn finish(self) {
        drop(self.queue);
        let _ = self.finished.recv_timeout(LAST);
    }
}

fn is_for(command: &Command, event: &Event) -> bool {
    command.event == event.name
        && (matches!(command.matcher.as_str(), "" | "*")
            || command.matcher.split('|').any(|part| part == event.about))
}

/// A hook that cannot be started or fails is nothing to the agent.
fn run(line: &str, event: &Event, environment: &Environment) {
    let mut program = Program::new("/bin/sh");
    program.arg("-c").arg(line).envs(environment.iter().cloned()).process_group(0);
    let cwd = event.payload.get("cwd").and_then(Value::as_str);
    if let Some(cwd) = cwd.filter(|cwd| Path::new(cwd).is_dir()) {
        program.current_dir(cwd);
    }
    program.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = program.spawn() else { return };
    let process = identify(child.id() as i32);
    if let Some(mut pipe) = child.stdin.take() {
        let _ = pipe.write_all(event.payload.to_string().as_bytes());
    }
    if let Some(process) = process
        && !matches!(await_death_within(&process, HOOK), Ok(true))
    {
        let _ = signal(&process, Signal::KILL);
    }
    let _ = child.wait();
}

/// The commands of a settings file in the form that Claude Code, Codex and Gemini share:
/// `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …}]}]}}`. What does not parse has none.
pub(super) fn commands_of(text: &str) -> Vec<Command> {
    let text = text.trim_start_matches('\u{feff}');
    let Ok(Some(settings)) = jsonc_parser::parse_to_serde_value::<Option<Value>>(text, &Default::default())
    else {
        return Vec::new();
    };
    let mut commands = Vec::new();
    for (event, groups) in settings.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
            for hook in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                if let Some(line) = hook.get("command").and_then(Value::as_str) {
                    let (event, matcher) = (event.clone(), matcher.to_owned());
                    commands.push(Command { event, matcher, line: line.to_owned() });
                }
            }
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_out_of_settings() {
        let text = "\u{feff}{ // mine\n\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"a\"}]}],
            \"SessionStart\": [{\"matcher\": \"startup|resume\", \"hooks\": [{\"command\": \"b\"}, {\"type\": \"prompt\"}]}],}}";
        let commands = commands_of(text);
        let mut lines: Vec<&str> = commands.iter().map(|command| command.line.as_str()).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a", "b"]);
        let event =
            |about: &str| Event { name: "SessionStart", about: about.to_owned(), payload: Value::Null };
        let start = commands.iter().find(|command| command.line == "b").unwrap();
        assert!(is_for(start, &event("resume")) && !is_for(start, &event("clear")));
        assert!(commands_of("{ broken").is_empty());
    }
}
