use crate::provider::{Catalog, Custom, MAX_ID, NoLaunch, NoResume, Provider, Recorded};

const HEX: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

/// A whole id of each provider.
fn id(kind: &str) -> &'static str {
    match kind {
        "hermes" => "20260720_101112_a1b2c3",
        "opencode" => "ses_3f2a9b1c77Qz",
        "amp" => "T-7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "kiro" => "sess_7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "goose" => "20251108_1",
        "mine" => "abc.1",
        _ => HEX,
    }
}

fn custom() -> Custom {
    Custom {
        name: "mine".into(),
        binaries: vec!["mycli".into()],
        launch: vec!["--id".into(), "{session_id}".into()],
        resume: vec!["--open={session_id}".into()],
        keep: vec!["MYCLI_HOME".into()],
        store: "~/.mycli".into(),
        needs_cwd: false,
    }
}

fn catalog() -> Catalog {
    Catalog::new(vec![custom()]).unwrap()
}

fn owned(line: &str) -> Vec<String> {
    line.split('|').map(str::to_owned).collect()
}

/// The form every program has for "go on with some conversation, whichever is newest".
fn asks_for_the_newest(kind: &str, argv: &[String], id: &str) -> Option<String> {
    let next = |at: usize| argv.get(at + 1).map(String::as_str);
    argv.iter().enumerate().skip(1).find_map(|(at, word)| {
        let bad = match word.as_str() {
            "--continue"
            | "--last"
            | "-C"
            | "--latest"
            | "latest"
            | "last"
            | "--fork"
            | "--fork-session"
            | "fork"
            | "--restore-chat-history" => true,
            // the exact id belongs to the word
            "continue" => next(at) != Some(id),
            // Codex's settings
            "-c" => !next(at).is_some_and(|value| value.contains('=')),
            // alone it opens a list, or takes the newest
            "-s" if matches!(kind, "codex" | "gemini" | "qwen") => false, // a sandbox
            "--resume" | "-r" | "--session" | "-s" | "resume" => {
                let is_goose =
                    next(at) == Some("--session-id") && argv.get(at + 2).is_some_and(|word| word == id);
                next(at) != Some(id) && !is_goose
            }
            other => other.starts_with("--resume=") && other != format!("--resume={id}"),
        };
        bad.then(|| word.clone())
    })
}

/// Everything an agent may have been started with that must not come back.
const STARTS: &[&str] = &[
    "",
    "--continue",
    "-c",
    "--resume",
    "-r|0c9e6679-7425-40de-944b-e07fc1f90ae7",
    "--resume=0c9e6679-7425-40de-944b-e07fc1f90ae7|--fork-session",
    "resume|--last",
    "resume|0c9e6679-7425-40de-944b-e07fc1f90ae7",
    "fork|0c9e6679-7425-40de-944b-e07fc1f90ae7",
    "--session|latest",
    "--session-id|0c9e6679-7425-40de-944b-e07fc1f90ae7",
    "-s|ses_00000000",
    "--model|--continue",
    "--model|--last|--resume",
    "-c|--last",
    "-p|--continue|fix|it",
    "threads|continue",
    "--add-dir|/a|--continue",
    "--|--continue",
    "--model=--continue",
    "--restore-chat-history",
];

#[test]
fn no_provider_and_no_start_gives_the_newest_conversation() {
    let catalog = catalog();
    let mut built = 0;
    for kind in catalog.kinds() {
        let binary = catalog.binaries(kind)[0].to_owned();
        for start in STARTS {
            let mut argv = vec![binary.clone()];
            argv.extend(start.split('|').filter(|word| !word.is_empty()).map(str::to_owned));
            let recorded = Recorded { argv: &argv, bin: "" };
            match catalog.resume_argv(kind, id(kind), recorded) {
                Ok(list) => {
                    assert_eq!(asks_for_the_newest(kind, &list, id(kind)), None, "{kind} {start}: {list:?}");
                    let named = list.iter().filter(|word| word.contains(id(kind))).count();
                    assert_eq!(named, 1, "{kind} {start}: {list:?}");
                    assert!(!list.iter().any(|word| word.contains("0c9e6679")), "{kind} {start}: {list:?}");
                    built += 1;
                }
                Err(reason) => assert_eq!((kind, reason), ("aider", NoResume::Unsupported("aider".into()))),
            }
            let list = catalog.launch_argv(kind, None, recorded).unwrap();
            assert_eq!(asks_for_the_newest(kind, &list, ""), None, "{kind} {start}: {list:?}");
        }
    }
    assert_eq!(built, STARTS.len() * Provider::all().count());
}

#[test]
fn an_id_that_is_not_whole_is_an_error_everywhere() {
    let long = "a".repeat(600);
    let catalog = catalog();
    let hostile = [
        "-",
        "--last",
        "-c",
        "--continue",
        "latest",
        "LATEST",
        "last",
        "continue",
        "resume",
        " ",
        long.as_str(),
        "\u{1b}[2J",
        "a\nb",
        "a\0b",
        "../x",
        "a/../b",
        "/etc/passwd",
        "a b",
        "$(id)",
        "`id`",
        "a;b",
        "{session_id}",
        "{options}",
        "{session}",
        "é",
        "'",
    ];
    for kind in catalog.kinds() {
        let empty = catalog.resume_argv(kind, "", Recorded::default());
        assert!(matches!(empty, Err(NoResume::NoSession | NoResume::Unsupported(_))), "{kind}: {empty:?}");
        for text in hostile {
            assert!(!catalog.fits(kind, text), "{kind} takes {text:?}");
            let back = catalog.resume_argv(kind, text, Recorded::default());
            assert!(
                matches!(back, Err(NoResume::BadSession { .. } | NoResume::Unsupported(_))),
                "{kind} {text:?}: {back:?}"
            );
            if let Err(reason) = back {
                assert!(!reason.to_string().chars().any(char::is_control), "{reason}");
            }
            let start = catalog.launch_argv(kind, Some(text), Recorded::default());
            assert!(
                matches!(start, Err(NoLaunch::BadSession { .. } | NoLaunch::IdNotTaken(_))),
                "{kind} {text:?}: {start:?}"
            );
        }
        // a whole id with something around it
        for text in [format!("{} ", id(kind)), format!(" {}", id(kind)), format!("-{}", id(kind))] {
            assert!(!catalog.fits(kind, &text), "{kind} takes {text:?}");
        }
        if kind != "mine" {
            assert!(!catalog.fits(kind, &id(kind).repeat(2)), "{kind}");
            // a piece of one is a prefix, an index or a name
            for text in [&id(kind)[..8], "1", "my-name", "0"] {
                assert!(!catalog.fits(kind, text), "{kind} takes {text:?}");
            }
        }
        assert!(catalog.fits(kind, id(kind)), "{kind}");
    }
    assert!(!catalog.fits("mine", &"a".repeat(MAX_ID + 1)));
    assert!(matches!(
        catalog.resume_argv("vim", HEX, Recorded::default()),
        Err(NoResume::UnknownProvider(_))
    ));
}

#[test]
fn what_brings_each_back() {
    let catalog = catalog();
    for (kind, line) in [
        ("claude", "claude|--resume|ID"),
        ("codex", "codex|--no-daemon|resume|ID"),
        ("gemini", "gemini|--resume|ID"),
        ("opencode", "opencode|--session|ID"),
        ("hermes", "hermes|--resume|ID"),
        ("copilot", "copilot|--resume=ID"),
        ("qwen", "qwen|--resume|ID"),
        ("pi", "pi|--session|ID"),
        ("cursor", "cursor-agent|--resume|ID"),
        ("amp", "amp|threads|continue|ID"),
        ("grok", "grok|--resume|ID"),
        ("kiro", "kiro-cli|chat|--resume-id|ID"),
        ("crush", "crush|--session|ID"),
        ("goose", "goose|session|--resume|--session-id|ID"),
        ("antigravity", "agy|--conversation|ID"),
        ("kimi", "kimi|--session|ID"),
        ("mine", "mycli|--open=ID"),
    ] {
        let argv = catalog.resume_argv(kind, id(kind), Recorded::default()).unwrap();
        assert_eq!(argv.join("|").replace(id(kind), "ID"), line);
    }
}

#[test]
fn what_starts_each_with_an_id() {
    let catalog = catalog();
    for (kind, line) in [
        ("claude", "claude|--session-id|ID"),
        ("gemini", "gemini|--session-id|ID"),
        ("copilot", "copilot|--session-id=ID"),
        ("qwen", "qwen|--session-id|ID"),
        ("grok", "grok|--session-id|ID"),
        ("kimi", "kimi|--session|ID"),
        ("mine", "mycli|--id|ID"),
    ] {
        assert!(catalog.chooses_id(kind));
        let argv = catalog.launch_argv(kind, Some(id(kind)), Recorded::default()).unwrap();
        assert_eq!(argv.join("|").replace(id(kind), "ID"), line);
    }
    for kind in ["codex", "opencode", "hermes", "pi", "amp", "aider", "crush", "goose", "vim"] {
        assert!(!catalog.chooses_id(kind), "{kind}");
    }
    let refused = catalog.launch_argv("codex", Some(HEX), Recorded::default());
    assert_eq!(refused, Err(NoLaunch::IdNotTaken("codex".into())));
    let plain = |kind| catalog.launch_argv(kind, None, Recorded::default()).unwrap().join(" ");
    assert_eq!(plain("codex"), "codex --no-daemon");
    assert_eq!(plain("kiro"), "kiro-cli chat");
    assert_eq!(plain("mine"), "mycli");
}

#[test]
fn known_options_come_along_and_nothing_else() {
    let catalog = Catalog::default();
    for (kind, line, kept) in [
        (
            "claude",
            "claude|--model|opus|--permission-mode|plan|fix it",
            "--model|opus|--permission-mode|plan",
        ),
        ("claude", "claude|--dangerously-skip-permissions|-c", "--dangerously-skip-permissions"),
        ("claude", "node|/usr/bin/claude|--model=opus[1m]", "--model=opus[1m]"),
        (
            "claude",
            "claude|--settings|/home/u/s.json|--add-dir|/a|/b|-p",
            "--settings|/home/u/s.json|--add-dir|/a|/b",
        ),
        ("claude", "claude|--settings|{\"model\":\"opus\"}", "--settings|{\"model\":\"opus\"}"),
        ("claude", "claude|--settings|{\"env\":{\"ANTHROPIC_API_KEY\":\"sk-1\"}}", ""),
        ("claude", "claude|--mcp-config|{\"x\":{\"token\":\"t\"}}", ""),
        ("claude", "claude|--append-system-prompt|--model|opus", ""),
        ("claude", "claude|--settings={\"apiKeyHelper\":\"x\"}", ""),
        ("codex", "codex|-m|o4|-s|workspace-write|-a|never|hello", "-m|o4|-s|workspace-write|-a|never"),
        ("codex", "codex|-c|model_reasoning_effort=high|-c|api_key=sk", "-c|model_reasoning_effort=high"),
        ("codex", "codex|-c|-c|x=1", "-c|x=1"),
        (
            "codex",
            "codex|-c|model_providers.m={base_url=\"u\",env_key=\"K\"}",
            "-c|model_providers.m={base_url=\"u\",env_key=\"K\"}",
        ),
        ("codex", "codex|--no-daemon|resume|-m|o4|0c9e6679-7425-40de-944b-e07fc1f90ae7", "-m|o4"),
        ("codex", "codex|--yolo|--|--model|x", "--yolo"),
        ("codex", "codex|-p|work|-C|../other|fix it", "-p|work|-C|../other"),
        ("codex", "codex|--profile=my work", "--profile=my work"),
        ("hermes", "hermes|-p|coder|--tui", "-p|coder|--tui"),
        ("claude", "claude|--restricted|--tools|Read|Grep|-p", "--restricted|--tools|Read|Grep"),
        ("codex", "sh|-c|codex --yolo", ""),
        ("codex", "claude|--model|opus", ""),
        ("gemini", "gemini|-i|--yolo|-m|pro", "-m|pro"),
        ("hermes", "python3|/v/bin/hermes|--tui|-c", "--tui"),
        ("qwen", "qwen|-y|--unknown|value", "-y"),
    ] {
        let argv = owned(line);
        let recorded = Recorded { argv: &argv, bin: "" };
        let back = catalog.resume_argv(kind, id(kind), recorded).unwrap();
        let bare = catalog.resume_argv(kind, id(kind), Recorded::default()).unwrap();
        let mut options = back.clone();
        for word in &bare {
            let at = options.iter().position(|other| other == word).unwrap();
            options.remove(at);
        }
        assert_eq!(options.join("|"), kept, "{line}");
    }
}

#[test]
fn the_program_is_a_name_of_the_provider() {
    let catalog = Catalog::default();
    for (bin, name) in [
        ("/opt/kimi-cli", "kimi-cli"),
        ("/home/u/.local/share/kimi/versions/1.2", "kimi"),
        ("/usr/bin/python3", "kimi"),
        ("", "kimi"),
    ] {
        let recorded = Recorded { argv: &[], bin };
        assert_eq!(catalog.resume_argv("kimi", HEX, recorded).unwrap()[0], name);
    }
}

#[test]
fn reasons_have_names() {
    let catalog = Catalog::default();
    let word = |kind: &str, id: &str| catalog.resume_argv(kind, id, Recorded::default()).unwrap_err().word();
    assert_eq!(word("aider", HEX), "resume_unsupported:aider");
    assert_eq!(word("claude", ""), "no_session");
    assert_eq!(word("claude", "x"), "bad_session");
    assert_eq!(word("vim", "x"), "unknown_provider:vim");
}
