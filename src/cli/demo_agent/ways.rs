//! What the providers do each in their own way: the one trait that `life` lives by.

use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::manners::Dialog;

/// A hook event that fires.
#[derive(Debug, Clone)]
pub(super) struct Event {
    /// Its name, as the settings write it.
    pub(super) name: &'static str,
    /// What a matcher is held against: the source of a start, the name of a tool.
    pub(super) about: String,
    /// What the command reads.
    pub(super) payload: Value,
}

/// What a step of a turn leaves.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// For the conversation's file.
    pub(super) text: String,
    /// What fires.
    pub(super) events: Vec<Event>,
}

/// A command of the settings.
#[derive(Debug, Clone)]
pub(super) struct Command {
    /// The event it is for.
    pub(super) event: String,
    /// `a|b`; empty or `*` is everything.
    pub(super) matcher: String,
    /// For `/bin/sh -c`.
    pub(super) line: String,
}

/// What the agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing: it waits for a prompt.
    Idle,
    /// A turn.
    Working,
    /// It asks for a permission.
    Asking,
}

/// Why a conversation comes to its end here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The user left.
    Left,
    /// A signal, or the terminal went.
    Told,
    /// Another conversation begins.
    Cleared,
}

/// How a signal is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The provider's last hooks, then this status.
    Exit(u8),
    /// It dies of the signal, with no hook.
    Die(Signal),
    /// Nothing.
    Ignore,
}

/// The words on the screen that differ from one provider to the other.
#[derive(Debug, Clone)]
pub(super) struct Words {
    /// Lines at the start.
    pub(super) banner: Vec<String>,
    /// Before a prompt: `❯` or `›`.
    pub(super) mark: &'static str,
    /// Before an answer.
    pub(super) bullet: &'static str,
    /// Dim, while the composer is empty.
    pub(super) placeholder: &'static str,
    /// Above the composer while a turn runs.
    pub(super) working: &'static str,
    /// Rules stand above and below the composer.
    pub(super) ruled: bool,
    /// Below the composer, idle.
    pub(super) idle_footer: String,
    /// Below the composer, working.
    pub(super) working_footer: String,
    /// A question for a permission.
    pub(super) asking: &'static [&'static str],
    /// After a turn.
    pub(super) finished: &'static str,
}

/// A provider's ways.
pub(super) trait Ways {
    /// Its prompts so far, oldest first.
    fn earlier(&self) -> &[String];
    /// What its screen says.
    fn words(&self) -> Words;
    /// It takes the whole screen.
    fn full_screen(&self) -> bool {
        false
    }
    /// Whether another process has the conversation open, so that it cannot go on here.
    fn open_elsewhere(&self) -> bool {
        false
    }
    /// What a dialog says.
    fn dialog(&self, dialog: Dialog) -> Vec<String>;
    /// The hooks of its settings.
    fn commands(&self) -> Vec<Command>;
    /// What a hook's environment has over the agent's own.
    fn hook_environment(&self, event: &str) -> Vec<(String, String)>;
    /// The agent is up.
    fn started(&mut self) -> Vec<Event>;
    /// A prompt was taken, whose answer will be this after that time.
    fn submitted(&mut self, prompt: &str, answer: &str, length: Duration) -> Taken;
    /// It asks for a permission.
    fn asked(&mut self) -> Vec<Event>;
    /// The turn has its answer.
    fn answered(&mut self, answer: &str, background: Option<&str>) -> Taken;
    /// The turn ended without one.
    fn interrupted(&mut self) {}
    /// Writes to the conversation's file.
    fn append(&mut self, text: &str) -> io::Result<()>;
    /// A conversation of its own begins in the same process.
    fn cleared(&mut self) -> Vec<Event>;
    /// What fires at the end.
    fn ended(&mut self, reason: Reason) -> Vec<Event>;
    /// What it does now, for those who can see it: registry, title, status sequence. Gives what is written to the terminal.
    fn shows(&mut self, doing: Doing) -> String;
    /// Where tmux shows it: `session:@window.%pane`.
    fn placed(&mut self, place: String);
    /// How it meets a signal.
    fn meets(&self, signal: Signal) -> Answer;
    /// How it meets the end of its terminal.
    fn meets_the_end_of_its_terminal(&self) -> Answer {
        self.meets(Signal::SIGHUP)
    }
    /// One Ctrl-C ends it.
    fn leaves_at_once(&self) -> bool {
        false
    }
    /// The lines of a clean exit.
    fn farewell(&self) -> Vec<String>;
    /// What is left on disk is put away.
    fn gone(&mut self);
}
