//! A real agent in a pane: its screen, what is said to it, what the model heard of it.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::install::{CLAUDE, CODEX, GEMINI, HERMES, Kind, OPENCODE, PI};
use crate::mock::Asked;
use crate::support::proc::Process;
use crate::support::{Ran, wait_until};
use crate::world::World;

/// How long an agent may take to be ready, to draw, to answer; the slowest needs ten seconds on a machine of its own.
const AGENT_DEADLINE: Duration = Duration::from_secs(60);
/// How long an agent may take to send a prompt on before Enter is pressed again.
const TAKEN_WITHIN: Duration = Duration::from_secs(3);

/// An agent where it runs now.
#[derive(Debug, Clone)]
pub(crate) struct Real<'w> {
    /// Where.
    pub(crate) world: &'w World,
    /// Which.
    pub(crate) kind: Kind,
    /// Its pane.
    pub(crate) pane: String,
}

impl<'w> Real<'w> {
    /// The agent `kind` that runs, or will run, in `pane`.
    pub(crate) fn in_pane(world: &'w World, kind: Kind, pane: &str) -> Real<'w> {
        Real { world, kind, pane: pane.to_owned() }
    }

    /// What its pane shows.
    #[track_caller]
    pub(crate) fn screen(&self) -> String {
        self.world.tmux.ok(["capture-pane", "-p", "-t", &self.pane])
    }

    /// Waits until its pane shows something that `shown` accepts; fails with the screen.
    #[track_caller]
    pub(crate) fn shows(&self, what: &str, shown: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        let mut last = String::new();
        let seen = crate::support::wait::within(AGENT_DEADLINE, || {
            last = self.screen();
            shown(&last).then(|| last.clone())
        });
        seen.unwrap_or_else(|| {
            panic!("{} did not show {what} in {:?}; its screen:\n{last}", self.kind.name, start.elapsed())
        })
    }

    /// Waits until it can be spoken to.
    #[track_caller]
    pub(crate) fn ready(&self) {
        let sign = |screen: &str| match self.kind {
            CLAUDE | HERMES => screen.lines().any(|line| line.starts_with('❯')),
            CODEX => screen.contains("Ask Codex to do") || screen.lines().any(|line| line.starts_with("› ")),
            GEMINI => screen.contains("Type your message"),
            OPENCODE => screen.contains("Ask anything") || screen.contains("ctrl+p commands"),
            PI => screen.contains("mock-model"),
            _ => panic!("no sign of {} is known", self.kind.name),
        };
        self.shows("that it is ready", sign);
    }

    /// Puts `prompt` into its input line and sends it; done when the model was asked.
    #[track_caller]
    pub(crate) fn say(&self, prompt: &str) -> Asked {
        self.typed(prompt);
        let start = Instant::now();
        loop {
            self.world.tmux.ok(["send-keys", "-t", &self.pane, "Enter"]);
            let heard = crate::support::wait::within(TAKEN_WITHIN, || self.world.mock.heard(prompt));
            if let Some(asked) = heard {
                return asked;
            }
            assert!(
                start.elapsed() < AGENT_DEADLINE,
                "{} does not send {prompt:?}; its screen:\n{}",
                self.kind.name,
                self.screen()
            );
        }
    }

    /// Puts `text` into its input line.
    #[track_caller]
    pub(crate) fn typed(&self, text: &str) {
        let mut load = self.world.tmux.command(["load-buffer", "-b", &self.pane, "-"]);
        Ran::feed(load.stderr(Stdio::piped()), Some(text.as_bytes())).ok();
        self.world.tmux.ok(["paste-buffer", "-p", "-d", "-b", &self.pane, "-t", &self.pane]);
        let start: String = text.chars().take(20).collect();
        self.shows("what was put into its input line", |screen| screen.contains(&start));
    }

    /// One turn: `words` are said, and `answer` comes back.
    #[track_caller]
    pub(crate) fn turn(&self, words: &str, answer: &str) -> Asked {
        let asked = self.say(&format!("{words} [[text={answer}]]"));
        // the prompt itself shows the answer too, in brackets; a moment after the answer the turn is over
        self.shows("the answer", |screen| {
            let answered =
                screen.matches(answer).count() > screen.matches(&format!("[[text={answer}]]")).count();
            answered && !screen.contains("esc to interrupt")
        });
        asked
    }

    /// The pane's own process.
    #[track_caller]
    pub(crate) fn process(&self) -> Process {
        let pid = self.world.tmux.format(&self.pane, "#{pane_pid}").parse().unwrap();
        Process::of(pid).unwrap_or_else(|| panic!("pane {} has a process", self.pane))
    }

    /// The record its pane is stamped with, once it is.
    #[track_caller]
    pub(crate) fn record(&self) -> String {
        wait_until("the pane to be stamped", AGENT_DEADLINE, || {
            let id = self.world.tmux.format(&self.pane, "#{@aitask_record}");
            (!id.is_empty()).then_some(id)
        })
    }

    /// Writes its screen to a file of the folder `AIT_REAL_SCREENS` names, if it names one: what fixtures are made of.
    pub(crate) fn recorded(&self, phase: &str) {
        let Some(folder) = std::env::var_os("AIT_REAL_SCREENS").map(std::path::PathBuf::from) else { return };
        std::fs::create_dir_all(&folder).unwrap();
        let coloured = self.world.tmux.ok(["capture-pane", "-p", "-e", "-t", &self.pane]);
        let mut file =
            std::fs::File::create(folder.join(format!("{}-{phase}.screen", self.kind.name))).unwrap();
        file.write_all(coloured.as_bytes()).unwrap();
        let title = self.world.tmux.format(&self.pane, "#{pane_title}");
        std::fs::write(folder.join(format!("{}-{phase}.title", self.kind.name)), title).unwrap();
    }
}
