//! The signs against recorded screens of the real programs: `fixtures/providers/README.md` tells how they were made.

use std::path::PathBuf;

use crate::provider::{Catalog, Composer, Dialog, Phase, Sight};

fn recorded(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/providers");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn sight(kind: &str, title: &str, screen: &str) -> Sight {
    Catalog::default().look(kind, title, screen)
}

const CLAUDE: &str = "✳ Mock title";

/// The file, the title the pane had, the phase and the prompt line.
const SEEN: &[(&str, &str, Phase, Composer)] = &[
    ("claude-startup.ansi", "✳ Claude Code", Phase::Ready, Composer::Empty),
    ("claude-idle.ansi", "✳ Claude Code", Phase::Ready, Composer::Empty),
    ("claude-working.ansi", CLAUDE, Phase::Working, Composer::Empty),
    ("claude-streaming.ansi", CLAUDE, Phase::Working, Composer::Empty),
    ("claude-queued.ansi", CLAUDE, Phase::Working, Composer::Empty),
    ("claude-permission.ansi", CLAUDE, Phase::Asking, Composer::Unknown),
    ("claude-permission-held.ansi", CLAUDE, Phase::Asking, Composer::Unknown),
    ("claude-question.txt", CLAUDE, Phase::Asking, Composer::Unknown),
    ("claude-approved.ansi", CLAUDE, Phase::Ready, Composer::Empty),
    ("claude-done.ansi", CLAUDE, Phase::Ready, Composer::Empty),
    ("claude-interrupted.txt", CLAUDE, Phase::Ready, Composer::Text),
    ("claude-error.txt", CLAUDE, Phase::Ready, Composer::Empty),
    ("claude-exit.ansi", "", Phase::Unknown, Composer::Unknown),
    ("claude-exit.txt", "", Phase::Unknown, Composer::Unknown),
    ("claude-trust.ansi", "vm", Phase::Dialog(Dialog::Trust), Composer::Unknown),
    ("codex-startup.ansi", "work-codex", Phase::Ready, Composer::Empty),
    ("codex-idle.ansi", "work-codex", Phase::Ready, Composer::Empty),
    ("codex-working.ansi", "⠴ Mock | work-codex", Phase::Working, Composer::Empty),
    ("codex-streaming.ansi", "⠧ Mock | work-codex", Phase::Working, Composer::Empty),
    ("codex-queued.ansi", "⠧ Mock | work-codex", Phase::Working, Composer::Empty),
    ("codex-permission.txt", "[ ! ] Action Required | Mock | work-codex", Phase::Asking, Composer::Unknown),
    (
        "codex-permission-held.txt",
        "[ . ] Action Required | Mock | work-codex",
        Phase::Asking,
        Composer::Unknown,
    ),
    ("codex-approved.ansi", "Mock | work-codex", Phase::Ready, Composer::Empty),
    ("codex-done.ansi", "Mock | work-codex", Phase::Ready, Composer::Empty),
    ("codex-interrupted.ansi", "Mock | work-codex", Phase::Ready, Composer::Empty),
    ("codex-error.ansi", "Mock | work-codex", Phase::Ready, Composer::Empty),
    ("codex-exit.ansi", "", Phase::Unknown, Composer::Unknown),
    ("codex-exit.txt", "", Phase::Unknown, Composer::Unknown),
    ("codex-open-elsewhere.txt", "alpha", Phase::Dialog(Dialog::OpenElsewhere), Composer::Unknown),
    ("codex-trust.ansi", "vm", Phase::Dialog(Dialog::Trust), Composer::Unknown),
];

fn kind(file: &str) -> &str {
    file.split('-').next().unwrap()
}

#[test]
fn every_recorded_phase_is_told() {
    for (file, title, phase, composer) in SEEN {
        let screen = recorded(file);
        // a terminal may be taller than what is on it
        for below in [0, 80] {
            let seen = sight(kind(file), title, &(screen.clone() + &"\n".repeat(below)));
            let wanted = Sight { phase: *phase, composer: *composer, background: false };
            assert_eq!(seen, wanted, "{file} with {below} empty lines below");
        }
    }
}

#[test]
fn the_screen_alone_is_never_wrongly_ready() {
    for (file, _, phase, _) in SEEN {
        for title in ["", "vm", "Mock | work-codex", "✳ Claude Code"] {
            let seen = sight(kind(file), title, &recorded(file)).phase;
            assert!(seen == *phase || seen == Phase::Unknown, "{file} under {title:?}: {seen:?}");
        }
    }
    // while Codex writes its answer only the title tells
    assert_eq!(sight("codex", "", &recorded("codex-streaming.ansi")).phase, Phase::Unknown);
}

#[test]
fn a_part_of_a_screen_is_never_wrongly_ready() {
    for (file, title, phase, _) in SEEN.iter().filter(|(_, _, phase, _)| *phase != Phase::Ready) {
        let screen = recorded(file);
        let lines: Vec<&str> = screen.lines().collect();
        // scrolled away at the top: what decides stands at the bottom
        for cut in 0..lines.len() {
            let seen = sight(kind(file), title, &lines[cut..].join("\n")).phase;
            assert_ne!(seen, Phase::Ready, "{file} ({phase:?}) without its first {cut} lines");
        }
    }
}

#[test]
fn another_providers_screen_and_rubbish_say_nothing() {
    let catalog = Catalog::default();
    for kind in catalog.kinds() {
        for screen in ["", "\n\n", "$ ls\na b\n$ ", "❯ ", "› ", "❯\n❯\n", "\u{1b}[2m\u{1b}", "────\n────\n"]
        {
            let seen = catalog.look(kind, "vm", screen);
            assert_eq!(seen.phase, Phase::Unknown, "{kind} {screen:?}");
        }
    }
    assert_eq!(catalog.look("vim", "", "x"), Sight::UNKNOWN);
    assert_ne!(sight("codex", "", &recorded("claude-idle.ansi")).phase, Phase::Ready);
    assert_ne!(sight("claude", "", &recorded("codex-idle.ansi")).phase, Phase::Ready);
}

#[test]
fn typed_text_is_told_from_a_placeholder() {
    let rule = "─".repeat(40);
    let claude = |input: &str| {
        sight("claude", "", &format!("{rule}\n{input}\n{rule}\n  ⏸ manual mode on · ? for shortcuts\n"))
            .composer
    };
    assert_eq!(claude("❯\u{a0}\u{1b}[7m \u{1b}[27m"), Composer::Empty);
    assert_eq!(claude("❯\u{a0}\u{1b}[7mT\u{1b}[0;2mry \"fix it\"\u{1b}[0m"), Composer::Empty);
    assert_eq!(claude("❯\u{a0}fix it\u{1b}[7m \u{1b}[0m"), Composer::Text);
    assert_eq!(claude("❯\u{a0}\u{1b}[7mf\u{1b}[0mix it"), Composer::Text);
    assert_eq!(claude("❯\u{a0}\n  second line"), Composer::Text);
    // the rest of a completion is dim, what was typed is not
    assert_eq!(claude("❯\u{a0}fi\u{1b}[7mx\u{1b}[0;2m it\u{1b}[0m"), Composer::Text);
    let codex = |input: &str| {
        sight(
            "codex",
            "x",
            &format!(" >_ OpenAI Codex\n\n{input}\n\n  mock-model default\n  ? for shortcuts\n"),
        )
    };
    assert_eq!(
        codex("\u{1b}[1m›\u{1b}[0m \u{1b}[2mAsk Codex to do anything\u{1b}[0m").composer,
        Composer::Empty
    );
    assert_eq!(codex("\u{1b}[1m›\u{1b}[0m fix it").composer, Composer::Text);
    assert_eq!(codex("\u{1b}[1m›\u{1b}[0m \n  second line").composer, Composer::Text);
    assert_eq!(codex("\u{1b}[1m›\u{1b}[0m 1. a list").phase, Phase::Unknown);
}

#[test]
fn a_quoted_dialog_is_no_dialog() {
    let rule = "─".repeat(40);
    let quoted = "● It shows:\n  Do you want to proceed?\n  ❯ 1. Yes\n  Esc to cancel · Tab to amend\n  • Working (2s • esc to interrupt)\n";
    let screen = format!("{quoted}\n{rule}\n❯ \n{rule}\n  ⏸ manual mode on · ? for shortcuts\n");
    assert_eq!(sight("claude", "", &screen).phase, Phase::Ready);
    let screen = "• It shows:\n  Press enter to confirm or esc to cancel\n\n  Worked for 5s • 20:49\n\n› \n\n  x\n  y\n";
    assert_eq!(sight("codex", "", screen).phase, Phase::Ready);
}

#[test]
fn work_behind_the_prompt_line_is_seen() {
    let rule = "─".repeat(40);
    for (footer, background) in [
        ("  ⏸ manual mode on · 1 shell · ↓ to manage", true),
        ("  ⏵⏵ bypass permissions on · 2 background tasks", true),
        ("  ⏸ manual mode on · ? for shortcuts · ← for agents", false),
    ] {
        let seen = sight("claude", "", &format!("{rule}\n❯ \n{rule}\n{footer}\n"));
        assert_eq!((seen.phase, seen.background), (Phase::Ready, background), "{footer}");
    }
}

#[test]
fn dialogs_before_the_conversation_have_names() {
    for (kind, screen, dialog) in [
        (
            "codex",
            "Hooks need review\n› 1. Review\n  Press enter to confirm or esc to go back",
            Dialog::HooksReview,
        ),
        (
            "codex",
            "Choose working directory to resume this session\n› 1. Use session directory\n  Press enter to continue",
            Dialog::WorkingDirectory,
        ),
        ("codex", "Sign in with ChatGPT\n> 1. x\n  Press enter to continue", Dialog::Login),
        ("codex", "Update available\n› 1. Update now\n  Press enter to continue", Dialog::Other),
        ("claude", "Select login method:\n ❯ 1. Claude account", Dialog::Login),
        ("claude", "Choose the text style that looks best with your terminal\n ❯ 1. Dark", Dialog::Setup),
        ("claude", "Select model\n ❯ 1. Opus\n Enter to confirm · Esc to exit", Dialog::Other),
        ("gemini", "Do you trust this folder?\n 1. Trust", Dialog::Trust),
    ] {
        assert_eq!(sight(kind, "", screen).phase, Phase::Dialog(dialog), "{screen}");
    }
}

#[test]
fn titles_tell_where_they_can() {
    for (kind, title, phase) in [
        ("gemini", "◇  Ready (dir)", Phase::Ready),
        ("gemini", "✋  Action Required (dir)", Phase::Asking),
        ("gemini", "⏲  Working… (dir)", Phase::Working),
        ("gemini", "✦  thinking of it (dir)", Phase::Working),
        ("gemini", "vm", Phase::Unknown),
        ("hermes", "⚠ title", Phase::Asking),
        ("hermes", "⏳ title", Phase::Working),
        ("hermes", "✓ title", Phase::Ready),
        ("grok", "⠋ busy", Phase::Working),
        ("grok", "⚠ Action Required", Phase::Asking),
        ("grok", "grok", Phase::Unknown),
        ("amp", "⠋ busy", Phase::Working),
        ("opencode", "OC | title", Phase::Unknown),
        ("copilot", "x GitHub Copilot", Phase::Unknown),
    ] {
        assert_eq!(sight(kind, title, "").phase, phase, "{kind} {title}");
    }
    // a question on the screen outweighs an idle title
    assert_eq!(sight("hermes", "✓ t", "Dangerous Command\n Allow once\n Deny").phase, Phase::Asking);
}

/// pi's prompt line is always on its screen, between the same rules, whatever it does, and it asks for no permission.
#[test]
fn the_prompt_line_of_pi_is_no_question() {
    let rule = "─".repeat(60);
    let frame = |above: &str, typed: &str| {
        format!(
            "{above}\n{rule}\n{typed}\n{rule}\n~/work (main)\n0.0%/200k (auto)    (anthropic) a-model • medium\n"
        )
    };
    for (title, screen, phase) in [
        ("π - work", frame(" pi v0.51.0\n escape to interrupt", ""), Phase::Unknown),
        ("π - work", frame(" Done: two files changed.", ""), Phase::Unknown),
        ("π - work", frame(" Shall I go on? Do you want to proceed?\n 1. Yes\n 2. No", ""), Phase::Unknown),
        ("π - work", frame(" Done.", " a draft?"), Phase::Unknown),
        ("π - work", frame(" ⠋ Working...", ""), Phase::Working),
    ] {
        assert_eq!(sight("pi", title, &screen).phase, phase, "{screen}");
    }
}
