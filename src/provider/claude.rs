//! Claude Code.

use super::Provider;
use super::ids::Shape;
use super::meaning::as_claude;
use super::screen::{Line, Screen};
use super::signs::{Composer, Dialog, Phase, Sight};
use super::spec::{ID, Launch, Look, Naming, OPTIONS, Spec, list, switch, value};
use super::store::{Layout, Root, Store};

pub(super) const SPEC: Spec = Spec {
    provider: Provider::Claude,
    name: "claude",
    binaries: &["claude"],
    packages: &["@anthropic-ai/claude-code"],
    modules: &[],
    tools: &["mcp", "update", "doctor", "config", "install", "setup-token", "plugin", "agents", "auth"],
    once: &["-p", "--print"],
    ids: Shape::Uuid,
    naming: Naming { flags: &["--session-id", "--resume", "-r"], word: None, forks: &["--fork-session"] },
    launch: Launch { plain: &["claude", OPTIONS], chosen: &["claude", "--session-id", ID, OPTIONS] },
    resume: &["claude", "--resume", ID, OPTIONS],
    kept: &[
        value(&["--model"]),
        value(&["--fallback-model"]),
        value(&["--effort"]),
        value(&["--agent"]),
        value(&["--permission-mode"]),
        switch(&["--dangerously-skip-permissions"]),
        switch(&["--allow-dangerously-skip-permissions"]),
        switch(&["--restricted"]),
        switch(&["--safe-mode"]),
        switch(&["--bare"]),
        list(&["--tools"]),
        list(&["--allowedTools", "--allowed-tools"]),
        list(&["--disallowedTools", "--disallowed-tools"]),
        value(&["--settings"]),
        value(&["--setting-sources"]),
        list(&["--add-dir"]),
        list(&["--mcp-config"]),
        switch(&["--strict-mcp-config"]),
        list(&["--plugin-dir"]),
        switch(&["--ide"]),
        switch(&["--chrome"]),
        switch(&["--no-chrome"]),
        switch(&["--ax-screen-reader"]),
    ],
    variables: &["CLAUDE_CONFIG_DIR", "CLAUDE_CODE_PROJECT_DIR_NAME"],
    needs_cwd: true,
    store: Store {
        roots: &[
            Root { variable: "CLAUDE_CONFIG_DIR", below: "" },
            Root { variable: "HOME", below: ".claude" },
        ],
        layout: Layout::Slugs,
    },
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PermissionDenied",
        "Notification",
        "Elicitation",
        "ElicitationResult",
        "Stop",
        "StopFailure",
        "SessionEnd",
    ],
    meaning: as_claude,
    look: Look::Own(look),
};

/// What the spinner before a running verb looks like: `✢ Noodling…`.
const SPINNERS: &[char] = &['·', '✢', '✳', '✶', '✻', '✽', '*'];

/// Words of a footer that count what runs behind the prompt line.
const BEHIND: &[&str] = &[
    "shell",
    "shells",
    "bash",
    "background",
    "task",
    "tasks",
    "monitor",
    "monitors",
    "agent",
    "agents",
    "local",
];

/// The prompt line's own frame: a rule above, a rule below, and at most this many lines of footer.
const FOOTER: usize = 6;

fn look(_title: &str, screen: &Screen) -> Sight {
    if screen.is_dead() {
        return Sight::UNKNOWN;
    }
    match frame(screen.lines()) {
        Some(frame) => framed(&frame),
        None => Sight::of(menu(screen)),
    }
}

/// The prompt line between its rules.
struct Frame<'a> {
    above: &'a [Line],
    input: &'a [Line],
    footer: &'a [Line],
}

fn is_rule(line: &Line) -> bool {
    line.text.starts_with("───")
}

fn frame(lines: &[Line]) -> Option<Frame<'_>> {
    let end = lines.iter().rposition(|line| !line.is_blank())? + 1;
    let below = lines[..end].iter().rposition(is_rule)?;
    let above = lines[..below].iter().rposition(is_rule)?;
    let input = &lines[above + 1..below];
    let footer = &lines[below + 1..end];
    let is_open = input.first().is_some_and(|line| line.text.starts_with('❯')) && footer.len() <= FOOTER;
    is_open.then_some(Frame { above: &lines[..above], input, footer })
}

fn framed(frame: &Frame<'_>) -> Sight {
    let typed = frame.input.iter().enumerate().any(|(at, line)| {
        let skip = usize::from(at == 0);
        !line.bright_after(skip).trim().is_empty()
    });
    let composer = if typed { Composer::Text } else { Composer::Empty };
    let says = |words: &str| frame.footer.iter().any(|line| line.text.contains(words));
    let background = frame.footer.iter().any(counts);
    let phase = if says("Resume this session with") {
        // it has left; its last screen stays behind
        return Sight::UNKNOWN;
    } else if says("esc to interrupt") || spins(frame.above) {
        Phase::Working
    } else if says("Esc to cancel") || frame.footer.iter().all(Line::is_blank) {
        // a menu in the frame's place, or a screen that is still being drawn
        Phase::Unknown
    } else {
        Phase::Ready
    };
    Sight { phase, composer, background }
}

/// Whether a verb is spinning above the prompt line: a tip and a list of tasks may stand between, but nothing that was
/// said.
fn spins(above: &[Line]) -> bool {
    let live = above.iter().rev().take_while(|line| !line.text.starts_with(['❯', '●']));
    live.filter(|line| !line.is_blank()).any(|line| {
        let mut letters = line.text.chars();
        let spinner = letters.next().is_some_and(|c| SPINNERS.contains(&c));
        let rest = letters.as_str();
        spinner && rest.starts_with(' ') && rest.contains('…')
    })
}

/// `1 shell`, `2 background tasks`.
fn counts(line: &Line) -> bool {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    words.windows(2).any(|pair| {
        pair[0].bytes().all(|b| b.is_ascii_digit()) && BEHIND.contains(&pair[1].trim_end_matches(','))
    })
}

/// The menus that take the prompt line's place. Only what stands at the bottom counts: a conversation may quote them.
fn menu(screen: &Screen) -> Phase {
    let says = |words: &str| screen.says(16, words);
    let hint = |words: &str| screen.says(3, words);
    if says("Showing detailed transcript") {
        return Phase::Unknown;
    }
    if says("Yes, I trust this folder") || says("Do you trust the files in this folder?") {
        return Phase::Dialog(Dialog::Trust);
    }
    if says("Select login method") || says("Paste code here if prompted") || says("Detected a custom API key")
    {
        return Phase::Dialog(Dialog::Login);
    }
    if says("Choose the text style that looks best") {
        return Phase::Dialog(Dialog::Setup);
    }
    if says("Resume session") || says("Resume Session") {
        return Phase::Dialog(Dialog::Picker);
    }
    let chosen = screen.upwards().take(16).any(|line| {
        let text = line.text.trim_start();
        text.strip_prefix("❯ ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let asks = says("Do you want to") || says("Would you like to") || hint("Enter to select");
    if chosen && asks && (hint("Esc to cancel") || hint("Tab to amend") || hint("ctrl+g to edit")) {
        return Phase::Asking;
    }
    let menu = ["Enter to confirm", "Enter to select", "Esc to cancel", "Esc to exit"];
    if menu.iter().any(|words| hint(words)) { Phase::Dialog(Dialog::Other) } else { Phase::Unknown }
}
