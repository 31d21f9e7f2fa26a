//! `OpenAI` Codex CLI. It is always started with a server of its own: on the shared one, hooks run with another pane's
//! environment.

use serde_json::Value;

use super::Provider;
use super::ids::Shape;
use super::meaning::{Meaning, Turn, as_claude, noise, text, turn};
use super::screen::{Line, Screen};
use super::signs::{Composer, Dialog, Phase, Sight, is_braille};
use super::spec::{ID, Launch, Look, Naming, OPTIONS, Spec, setting, switch, value};
use super::store::{Layout, Root, Store};

pub(super) const SPEC: Spec = Spec {
    provider: Provider::Codex,
    name: "codex",
    binaries: &["codex"],
    packages: &["@openai/codex"],
    modules: &[],
    tools: &[
        "app-server",
        "mcp",
        "mcp-server",
        "login",
        "logout",
        "queue",
        "completion",
        "apply",
        "cloud",
        "sandbox",
        "debug",
        "features",
    ],
    once: &["exec", "e", "review"],
    ids: Shape::Uuid,
    naming: Naming { flags: &[], word: Some("resume"), forks: &["fork", "--last"] },
    launch: Launch { plain: &["codex", "--no-daemon", OPTIONS], chosen: &[] },
    resume: &["codex", "--no-daemon", OPTIONS, "resume", ID],
    kept: &[
        value(&["--model", "-m"]),
        value(&["--profile", "-p"]),
        value(&["--sandbox", "-s"]),
        value(&["--ask-for-approval", "-a"]),
        value(&["--cd", "-C"]),
        switch(&["--full-auto"]),
        switch(&["--approve-for-me"]),
        switch(&["--strict-config"]),
        switch(&["--dangerously-bypass-approvals-and-sandbox", "--yolo"]),
        switch(&["--dangerously-bypass-hook-trust"]),
        switch(&["--oss"]),
        value(&["--local-provider"]),
        switch(&["--search"]),
        switch(&["--no-alt-screen"]),
        value(&["--add-dir"]),
        value(&["--enable"]),
        value(&["--disable"]),
        setting(&["--config", "-c"]),
    ],
    variables: &["CODEX_HOME", "CODEX_SQLITE_HOME"],
    needs_cwd: false,
    store: Store {
        roots: &[Root { variable: "CODEX_HOME", below: "" }, Root { variable: "HOME", below: ".codex" }],
        layout: Layout::Rollouts,
    },
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "Stop",
        "Interrupt",
        "SessionEnd",
    ],
    meaning,
    look: Look::Own(look),
};

/// What the thread that invents titles is asked. It is no turn of the agent.
const TITLE: &str = "Generate a concise, single-line task title";

fn meaning(event: &str, payload: &Value) -> Meaning {
    // the old notify program: one kind of event, for every thread there is
    if text(payload, "type") == Some("agent-turn-complete") {
        let asked = payload.get("input-messages").and_then(Value::as_array);
        let titles = asked.is_some_and(|list| {
            list.iter().filter_map(Value::as_str).any(|message| message.trim_start().starts_with(TITLE))
        });
        return if titles { noise() } else { turn(Turn::Waiting, payload, "thread-id") };
    }
    if text(payload, "prompt").is_some_and(|prompt| prompt.trim_start().starts_with(TITLE)) {
        return noise();
    }
    as_claude(event, payload)
}

fn look(title: &str, screen: &Screen) -> Sight {
    if screen.is_dead() {
        return Sight::UNKNOWN;
    }
    if let Some(phase) = menu(screen) {
        return Sight::of(phase);
    }
    let lines = screen.lines();
    let Some(prompt) = prompt_line(lines) else {
        return Sight::of(titled(title).unwrap_or(Phase::Unknown));
    };
    let (above, composer) = (&lines[..prompt], composer(&lines[prompt..]));
    let phase = if works(above) {
        Phase::Working
    } else if let Some(phase) = titled(title) {
        phase
    } else if is_over(above) {
        Phase::Ready
    } else {
        // while an answer is being written nothing on the screen says so
        Phase::Unknown
    };
    Sight { phase, composer, background: false }
}

/// Only a working or an asking agent has a mark in its title, and the user may have switched the marks off.
fn titled(title: &str) -> Option<Phase> {
    if is_braille(title) {
        return Some(Phase::Working);
    }
    title.contains("] Action Required").then_some(Phase::Asking)
}

/// The menus that take the prompt line's place: their hint is the last line of the screen.
fn menu(screen: &Screen) -> Option<Phase> {
    let last = screen.upwards().next()?.text.to_lowercase();
    if last.contains("r retry") && screen.says(6, "This conversation is open in another app") {
        return Some(Phase::Dialog(Dialog::OpenElsewhere));
    }
    let hints = ["esc to cancel", "esc back", "enter continue", "enter to continue", "enter to confirm"];
    if !hints.iter().any(|hint| last.contains(hint)) {
        return None;
    }
    let says = |words: &str| screen.says(16, words);
    let is = |list: &[&str]| list.iter().any(|words| says(words));
    Some(if is(&["Hooks need review"]) {
        Phase::Dialog(Dialog::HooksReview)
    } else if is(&["Trust this folder?", "Do you trust the contents of this directory"]) {
        Phase::Dialog(Dialog::Trust)
    } else if is(&["Sign in with ChatGPT", "Provide your own API key"]) {
        Phase::Dialog(Dialog::Login)
    } else if is(&["Choose working directory", "Where should the new conversation run"]) {
        Phase::Dialog(Dialog::WorkingDirectory)
    } else if is(&["Resume a previous session"]) {
        Phase::Dialog(Dialog::Picker)
    } else if is(&["Would you like to", "Do you want to approve", "Allow command?", "Do you want to allow"]) {
        Phase::Asking
    } else {
        Phase::Dialog(Dialog::Other)
    })
}

/// Lines of footer below the prompt line, the input's own further lines included.
const BELOW: usize = 24;

/// The lowest line that begins as the prompt line does.
fn prompt_line(lines: &[Line]) -> Option<usize> {
    let found = lines.iter().rposition(|line| line.text == "›" || line.text.starts_with("› "))?;
    let choice = lines[found].text.chars().nth(2).is_some_and(|c| c.is_ascii_digit())
        && lines[found].text.chars().nth(3) == Some('.');
    (!choice && lines.len() - found <= BELOW).then_some(found)
}

fn composer(from_prompt: &[Line]) -> Composer {
    // further lines of the input come before the blank line above the footer
    let typed = from_prompt.iter().enumerate().take_while(|(at, line)| *at == 0 || !line.is_blank());
    let mut bright = typed.map(|(at, line)| line.bright_after(usize::from(at == 0)));
    if bright.any(|text| !text.trim().is_empty()) { Composer::Text } else { Composer::Empty }
}

/// `• Working (2s • esc to interrupt)` above the prompt line; queued prompts may stand between.
fn works(above: &[Line]) -> bool {
    above
        .iter()
        .rev()
        .filter(|line| !line.is_blank())
        .take(12)
        .any(|line| line.text.starts_with(['•', '◦']) && line.text.contains("esc to interrupt"))
}

/// Whether the last thing above the prompt line ends a turn, or no turn was ever begun.
fn is_over(above: &[Line]) -> bool {
    let last = above.iter().rev().find(|line| !line.is_blank());
    let ends = last.is_some_and(|line| {
        let text = line.text.trim_start();
        // `Worked for 5s • 20:49` with the clock; without it, it parts two halves of one turn
        (text.starts_with("Worked for ") && text.contains(" • ")) || text.starts_with("■ ")
    });
    let begun = above.iter().any(|line| line.text.starts_with(['›', '•', '◦', '✔']));
    let header = above.iter().any(|line| line.text.contains(">_ OpenAI Codex"));
    ends || (header && !begun)
}
