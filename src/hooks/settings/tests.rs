use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;

fn homes(base: &Path) -> Vec<Home> {
    let home = base.to_path_buf();
    let all = PROVIDERS.iter().map(|provider| {
        Home::of(*provider, |name| (name == "HOME").then(|| home.clone().into_os_string())).unwrap()
    });
    all.inspect(|home| fs::create_dir_all(&home.folder).unwrap()).collect()
}

fn apply(change: Result<Option<Change>, SettingsError>) -> bool {
    let change = change.unwrap();
    if let Some(change) = &change {
        change.apply().unwrap();
    }
    change.is_some()
}

/// Files as users have them, in Claude's form.
fn files() -> Vec<(&'static str, String)> {
    let foreign = "{\n  // mine\n  \"model\": \"opus\", /* keep */\n  \"hooks\": {\n    \"Stop\": [\n      // a safety hook\n      {\"matcher\": \"\", \"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]},\n    ],\n    \"SessionStart\": [{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}],\n    \"Nothing\": []\n  },\n  \"z\": 1,\n  \"a\": [1, 2]\n}\n";
    let every: String = Catalog::default()
        .hook_events("claude")
        .iter()
        .map(|event| format!("\"{event}\":[{{\"hooks\":[{{\"command\":\"f\",\"type\":\"command\"}}]}}],"))
        .collect();
    let mut all = vec![
        ("empty table", "{}".to_owned()),
        ("empty table, lined", "{\n}".to_owned()),
        ("comment alone", "{ // nothing yet\n}\n".to_owned()),
        ("one line", r#"{"b":1,"a":{"hooks":{}}}"#.to_owned()),
        ("no hooks", "{\n    \"b\": 1\n}\n".to_owned()),
        ("empty hooks", "{\n  \"hooks\": {},\n  \"b\": 1\n}\n".to_owned()),
        ("empty hooks, lined", "{\n  \"hooks\": {\n  }\n}\n".to_owned()),
        ("empty list", r#"{"hooks": {"Stop": [], "SessionStart": [ ]}}"#.to_owned()),
        ("comments, odd order, trailing commas", foreign.to_owned()),
        ("foreign hooks in every event", format!("{{\"hooks\":{{{every}}}}}")),
        ("tabs, no end", "{\n\t\"hooks\":\n\t{\n\t\t\"Stop\": [ {\"hooks\": []} ]\n\t}\n}".to_owned()),
    ];
    let crlf: Vec<_> = all.iter().map(|(_, text)| ("CRLF", text.replace('\n', "\r\n"))).collect();
    let bom: Vec<_> = all.iter().map(|(_, text)| ("BOM", format!("\u{feff}{text}"))).collect();
    all.extend(crlf);
    all.extend(bom);
    all
}

#[test]
fn five_setups_leave_one_entry_and_a_removal_every_foreign_byte() {
    let base = tempfile::tempdir().unwrap();
    for home in homes(base.path()) {
        if matches!(home.provider, Provider::Copilot | Provider::Hermes) {
            continue;
        }
        let events = Catalog::default().hook_events(home.provider.name()).len();
        for (what, text) in files() {
            fs::write(&home.file, &text).unwrap();
            fs::set_permissions(&home.file, fs::Permissions::from_mode(0o600)).unwrap();
            for program in ["/usr/bin/ait", "/usr/bin/ait", "/opt/My Apps/ait", "/b/ait", "/b/ait"] {
                apply(home.install(Path::new(program)));
                let entries = home.entries().unwrap();
                assert_eq!(entries.len(), events, "{what}: {entries:#?}");
                let mut named: Vec<&str> = entries.iter().map(|(event, _)| event.as_str()).collect();
                named.sort_unstable();
                named.dedup();
                assert_eq!(named.len(), events, "{what}: once for each event");
            }
            assert!(!apply(home.install(Path::new("/b/ait"))), "{what}: nothing to do");
            assert!(apply(home.remove()));
            assert_eq!(fs::read_to_string(&home.file).unwrap(), text, "{what}");
            assert_eq!(fs::metadata(&home.file).unwrap().mode() & 0o7777, 0o600);
            assert!(!apply(home.remove()), "{what}: nothing left");
        }
        fs::remove_file(&home.file).unwrap();
        apply(home.install(Path::new("/usr/bin/ait")));
        assert_eq!(home.entries().unwrap().len(), events);
        apply(home.remove());
        assert!(!home.file.exists(), "a file that was made goes");
    }
}

#[test]
fn what_another_program_wrote_anew_is_still_taken_out() {
    let base = tempfile::tempdir().unwrap();
    let home = &homes(base.path())[0];
    fs::write(
        &home.file,
        r#"{"model":"opus","hooks":{"Stop":[{"hooks":[{"type":"command","command":"say"}]}]}}"#,
    )
    .unwrap();
    apply(home.install(Path::new("/usr/bin/ait")));
    let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&home.file).unwrap()).unwrap();
    fs::write(&home.file, format!("{value:#}")).unwrap();
    apply(home.remove());
    let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(&home.file).unwrap()).unwrap();
    let wanted =
        serde_json::json!({"model":"opus","hooks":{"Stop":[{"hooks":[{"type":"command","command":"say"}]}]}});
    assert_eq!(value, wanted);
}

#[test]
fn older_entries_and_those_beside_foreign_ones_in_one_group_go_alone() {
    let base = tempfile::tempdir().unwrap();
    let home = &homes(base.path())[0];
    let old = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say"},{"type":"command","command":"ait agent-session activity hook stop"}]},{"hooks":[{"type":"command","command":"/old/ait hook Stop --provider claude"}]}]}}"#;
    fs::write(&home.file, old).unwrap();
    apply(home.remove());
    let left = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say"}]}]}}"#;
    assert_eq!(fs::read_to_string(&home.file).unwrap(), left);
}

#[test]
fn what_cannot_be_edited_is_refused_and_untouched() {
    let base = tempfile::tempdir().unwrap();
    for home in homes(base.path()) {
        let broken: &[&str] = match home.provider {
            Provider::Hermes => {
                &["a: [", "hooks: {pre_llm_call: [{command: x}]}\n", "{a: 1}\n", "a: 1\n---\nb: 2\n"]
            }
            Provider::Copilot => &["{", "{\"hooks\":{\"x\":[{\"bash\":\"say\"}]}}"],
            _ => &[
                "",
                "{",
                "[]",
                "{\"hooks\": 1}",
                "{\"hooks\":{\"SessionStart\":{}}}",
                "{\"hooks\":{},\"hooks\":{}}",
                "{'a':1}",
                "{a:1}",
                "{} x",
            ],
        };
        fs::create_dir_all(home.file.parent().unwrap()).unwrap();
        for text in broken {
            fs::write(&home.file, text).unwrap();
            let refused = home.install(Path::new("/usr/bin/ait"));
            assert!(matches!(refused, Err(SettingsError::Refused { .. })), "{text:?}: {refused:?}");
            assert_eq!(&fs::read_to_string(&home.file).unwrap(), text);
        }
        fs::remove_file(&home.file).unwrap();
    }
    let home = &homes(base.path())[0];
    fs::write(&home.file, "{}").unwrap();
    let change = home.install(Path::new("/usr/bin/ait")).unwrap().unwrap();
    fs::write(&home.file, "{ }").unwrap();
    assert!(matches!(change.apply(), Err(ServiceError::Changed { .. })));
    assert_eq!(fs::read_to_string(&home.file).unwrap(), "{ }");
    fs::set_permissions(&home.file, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(
        home.install(Path::new("/usr/bin/ait")),
        Err(SettingsError::File(ServiceError::NotOurs { .. }))
    ));
    let nobody =
        Home::of(Provider::Claude, |name| (name == "HOME").then(|| base.path().join("no").into())).unwrap();
    assert!(matches!(nobody.install(Path::new("/usr/bin/ait")), Err(SettingsError::NoHome { .. })));
    assert!(!nobody.folder.exists(), "a provider's home is never made");
}

#[test]
fn a_file_of_our_own_and_a_marked_block_come_and_go() {
    let base = tempfile::tempdir().unwrap();
    for home in homes(base.path()) {
        match home.provider {
            Provider::Copilot => {
                assert!(apply(home.install(Path::new("/usr/bin/ait"))));
                assert!(!apply(home.install(Path::new("/usr/bin/ait"))));
                assert!(apply(home.install(Path::new("/b/ait"))));
                assert!(apply(home.remove()));
                assert!(!home.file.exists());
            }
            Provider::Hermes => {
                for text in ["", "model: x # mine\n", "model: x", "a: 1\r\nb:\r\n  - 2\r\n"] {
                    fs::write(&home.file, text).unwrap();
                    assert!(apply(home.install(Path::new("/usr/bin/ait"))), "{text:?}");
                    assert!(!apply(home.install(Path::new("/usr/bin/ait"))), "{text:?}");
                    assert!(apply(home.install(Path::new("/opt/My Apps/ait"))));
                    assert!(apply(home.remove()));
                    assert_eq!(fs::read_to_string(&home.file).unwrap(), text);
                }
            }
            _ => {}
        }
    }
}
