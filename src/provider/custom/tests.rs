use super::*;
use crate::provider::{Catalog, Program, Recorded};

fn fine() -> Custom {
    Custom {
        name: "my-agent".into(),
        binaries: words(&["mycli", "mycli-dev"]),
        resume: vec!["mycli".into(), "open".into(), "{session_id}".into()],
        ..Custom::default()
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn one_is_like_a_built_in_one() {
    let custom = Custom {
        launch: words(&["--id={session}"]),
        keep: words(&["MYCLI_HOME"]),
        store: "~/.mycli".into(),
        ..fine()
    };
    let catalog = Catalog::new(vec![custom]).unwrap();
    let back = catalog.resume_argv("my-agent", "a1", Recorded::default()).unwrap();
    assert_eq!(back, ["mycli", "open", "a1"]);
    let start = catalog.launch_argv("my-agent", Some("a1"), Recorded::default()).unwrap();
    assert_eq!(start, ["mycli", "--id=a1"]);
    assert!(catalog.kept_variables("my-agent").contains(&"MYCLI_HOME"));
    assert_eq!(catalog.folder("my-agent"), Some("~/.mycli"));
    for (line, id) in [
        ("mycli|open|a1", Some("a1")),
        ("mycli|--id=a1|open|a1", Some("a1")),
        ("mycli|--id=a1|open|b2", None),
        ("mycli|open|--yolo", None),
        ("mycli|open|latest", None),
        ("mycli|a1", None),
        ("mycli|--|open|a1", None),
    ] {
        let argv: Vec<Vec<u8>> = line.split('|').map(|word| word.as_bytes().to_vec()).collect();
        assert_eq!(catalog.session_id("my-agent", &argv).as_deref(), id, "{line}");
    }
    let told = serde_json::json!({ "session_id": "a1" });
    assert_eq!(catalog.hook_meaning("my-agent", "SessionStart", &told).session_id.as_deref(), Some("a1"));
    for argv in [&["/opt/mycli", "x"][..], &["node", "--flag", "/usr/bin/mycli.js"]] {
        let argv: Vec<Vec<u8>> = argv.iter().map(|word| word.as_bytes().to_vec()).collect();
        assert_eq!(catalog.recognise(Program { exe: b"", argv: &argv }), Some("my-agent"));
    }
    let vim = [b"vim".to_vec(), b"mycli".to_vec()];
    assert_eq!(catalog.recognise(Program { exe: b"/usr/bin/vim", argv: &vim }), None);
}

#[test]
fn one_whose_program_runs_a_built_in_ones_is_no_other() {
    let catalog = Catalog::new(vec![fine()]).unwrap();
    let argv = words(&["/usr/bin/claude", "--resume"]);
    let recorded = Recorded { argv: &argv, bin: "/usr/bin/claude" };
    for (kind, other) in [("my-agent", None), ("claude", None), ("codex", Some("claude"))] {
        assert_eq!(catalog.other_than(kind, recorded), other, "{kind}");
    }
}

#[test]
fn one_without_a_way_back_is_fine_and_cannot_be_resumed() {
    let catalog = Catalog::new(vec![Custom { resume: Vec::new(), ..fine() }]).unwrap();
    let back = catalog.resume_argv("my-agent", "a1", Recorded::default()).unwrap_err();
    assert_eq!(back.word(), "resume_unsupported:my-agent");
}

#[test]
fn a_resume_that_does_not_name_one_conversation_is_refused() {
    for list in [
        &["open"][..],
        &["mycli"],
        &["--resume", "latest", "{session_id}"],
        &["--resume=latest", "{session_id}"],
        &["--continue", "{session_id}"],
        &["--continue={session_id}"],
        &["-c", "{session_id}"],
        &["--last", "{session_id}"],
        &["threads", "continue", "--id", "{session_id}"],
        &["--id", "{session_id}", "continue"],
        &["", "{session_id}"],
        &["a\nb", "{session_id}"],
    ] {
        let custom = Custom { resume: words(list), ..fine() };
        let refused = Catalog::new(vec![custom]).unwrap_err();
        assert!(refused.to_string().contains("my-agent"), "{list:?}: {refused}");
    }
    for list in [&["threads", "continue", "{session_id}"][..], &["--session={session_id}"]] {
        assert_eq!(Custom { resume: words(list), ..fine() }.check(), Ok(()), "{list:?}");
    }
}

#[test]
fn names_programs_variables_and_stores_are_checked() {
    for name in ["", "My", "-x", "1x", "a b", "a/b", "claude", "grok"] {
        assert!(Custom { name: name.into(), ..fine() }.check().is_err(), "{name}");
    }
    for binary in
        ["", "/opt/x", "a b", "sh", "bash", "node", "python3.13", "env", "npx", "claude", "-x", ".x"]
    {
        let refused = Custom { binaries: words(&[binary]), ..fine() }.check();
        assert!(matches!(refused, Err(Refused::BadProgram(_))), "{binary}");
    }
    for variable in ["", "A B", "1A", "A=B", "MYCLI_API_KEY", "MYCLI_TOKEN", "CLAUDECODE"] {
        let refused = Custom { keep: words(&[variable]), ..fine() }.check();
        assert!(matches!(refused, Err(Refused::BadVariable { .. })), "{variable}");
    }
    for store in ["x/y", "~", "/a/../b", "~/x/../../y"] {
        let refused = Custom { store: store.into(), ..fine() }.check();
        assert!(matches!(refused, Err(Refused::BadStore(_))), "{store}");
    }
    assert!(matches!(Catalog::new(vec![fine(), fine()]), Err(Refused::NameTaken(_))));
    let second = Custom { name: "other".into(), ..fine() };
    assert!(matches!(Catalog::new(vec![fine(), second]), Err(Refused::BadProgram(_))));
}
