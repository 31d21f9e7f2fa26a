use proptest::prelude::*;

use super::*;

fn claude(session: Option<&str>) -> Link {
    Link {
        worktree: "/srv/alpha".into(),
        backend: "claude".into(),
        session: session.map(str::to_owned),
        earlier: Vec::new(),
    }
}

fn codex(session: Option<&str>) -> Link {
    Link { backend: "codex".into(), ..claude(session) }
}

#[track_caller]
fn linked(text: &str, format: Format, one: &Link) -> String {
    String::from_utf8(link(text.as_bytes(), format, one).unwrap()).unwrap()
}

fn told(text: &str, format: Format) -> Vec<String> {
    let one = |entry: Entry| {
        let or = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        format!("{} {} {}", entry.worktree, or(entry.backend), or(entry.session))
    };
    entries(text.as_bytes(), format).into_iter().map(one).collect()
}

const ORG: &str = "#+TITLE: A task\n#+DATE: 2026-11-30\n#+URL: https://x\n#+BRANCH: main\n#+AGENT: claude\n\
                   #+SESSION_ID: <Usually you can get the session id with /status>\n\n* Task Description\n\nDo it\n";

#[test]
fn an_org_file_gets_its_line_and_its_section() {
    let text = linked(ORG, Format::Org, &claude(Some("id-1")));
    let mirror = ORG.replace("<Usually you can get the session id with /status>", "id-1");
    let section = "\n* AI Sessions\n** alpha · claude\n:PROPERTIES:\n:WORKTREE: /srv/alpha\n:BACKEND: claude\n:SESSION_ID: id-1\n:END:\n";
    assert_eq!(text, mirror + section);
    assert_eq!(linked(&text, Format::Org, &claude(Some("id-1"))), text, "once");
    let bare = "#+TITLE: A task\n\nText\n";
    let text = linked(bare, Format::Org, &claude(Some("id-1")));
    assert!(text.starts_with("#+TITLE: A task\n#+SESSION_ID: id-1\n\nText\n\n* AI Sessions\n"), "{text}");
}

#[test]
fn a_markdown_file_gets_its_line_and_its_section() {
    let text = linked("# A task\n\nDo it\n", Format::Markdown, &claude(Some("id-1")));
    assert_eq!(
        text,
        "# A task\n<!-- ait:session-id id-1 -->\n\nDo it\n\n## AI Sessions\n\n\
         - worktree: /srv/alpha · backend: claude · session: id-1\n"
    );
    assert_eq!(linked(&text, Format::Markdown, &claude(Some("id-1"))), text, "once");
}

#[test]
fn the_latest_handoff_is_the_one_that_counts() {
    let org = "* Agent Handoff [2026-01-02 Fri] :ait:\nold\n** Next\nmore\n* Notes\nx\n* agent handoff [2025-12-31]\ny\n";
    let told = handoff(org.as_bytes(), Format::Org).expect("one");
    assert_eq!(told, "* Agent Handoff [2026-01-02 Fri] :ait:\nold\n** Next\nmore");
    let markdown =
        "```\n## Agent Handoff 2030\n```\n## Agent Handoff\none\n## Agent Handoff\r\ntwo\r\n# End\n";
    assert_eq!(handoff(markdown.as_bytes(), Format::Markdown).as_deref(), Some("## Agent Handoff\ntwo"));
    for none in ["", "## Agent\n", "Agent Handoff\n", "## The Agent Handoff\n"] {
        assert_eq!(handoff(none.as_bytes(), Format::Markdown), None, "{none}");
    }
}

#[test]
fn an_entry_is_known_by_worktree_and_backend_until_its_conversation_is() {
    for format in [Format::Org, Format::Markdown] {
        let one = linked("", format, &claude(None));
        assert_eq!(told(&one, format), ["/srv/alpha claude -"]);
        assert!(!one.contains("ession_id") && !one.contains("session-id"), "no mirror of nothing: {one}");
        let two = linked(&one, format, &codex(None));
        assert_eq!(told(&two, format), ["/srv/alpha claude -", "/srv/alpha codex -"]);
        assert!(two.starts_with(&one), "nothing else is touched");
        let known = linked(&two, format, &codex(Some("id-2")));
        assert_eq!(told(&known, format), ["/srv/alpha claude -", "/srv/alpha codex id-2"], "in place");
        assert_eq!(linked(&known, format, &codex(Some("id-2"))), known);
        // another conversation of the same backend in the same worktree, and one of another worktree
        let more = linked(&known, format, &codex(Some("id-3")));
        assert_eq!(told(&more, format).last().unwrap(), "/srv/alpha codex id-3");
        assert_eq!(told(&more, format).len(), 3);
        let beta = Link { worktree: "/srv/beta".into(), ..claude(Some("id-4")) };
        assert_eq!(told(&linked(&more, format, &beta), format).len(), 4);
        // the same agent went on to another conversation
        let cleared = Link { earlier: vec!["id-1".into(), "id-2".into()], ..codex(Some("id-5")) };
        assert_eq!(
            told(&linked(&known, format, &cleared), format),
            ["/srv/alpha claude -", "/srv/alpha codex id-5"]
        );
    }
}

#[test]
fn an_entry_that_names_no_backend_agrees_with_any() {
    let org = "* AI Sessions\n** old\n  :properties:\n  :Worktree: /srv/alpha\n  :Other: x\n  :END:\nnotes\n* Next\n";
    assert_eq!(told(org, Format::Org), ["/srv/alpha - -"]);
    assert_eq!(
        linked(org, Format::Org, &codex(Some("id"))),
        "#+SESSION_ID: id\n* AI Sessions\n** old\n  :properties:\n  :Worktree: /srv/alpha\n  :Other: x\n  :BACKEND: codex\n  \
         :SESSION_ID: id\n  :END:\nnotes\n* Next\n"
    );
    let markdown = "## AI Sessions\n* Worktree: /srv/alpha · note: mine\n\ntext\n";
    assert_eq!(told(markdown, Format::Markdown), ["/srv/alpha - -"]);
    assert_eq!(
        linked(markdown, Format::Markdown, &codex(Some("id"))),
        "<!-- ait:session-id id -->\n## AI Sessions\n* Worktree: /srv/alpha · backend: codex · note: mine · session: id\n\ntext\n"
    );
    let unknown = "## AI Sessions\n- worktree: /srv/alpha · backend: claude · session: -\n";
    let text = linked(unknown, Format::Markdown, &claude(Some("id")));
    assert!(
        text.ends_with("\n## AI Sessions\n- worktree: /srv/alpha · backend: claude · session: id\n"),
        "{text}"
    );
}

#[test]
fn line_ends_and_a_missing_last_one_stay() {
    let crlf = linked("# A\r\n\r\ntext", Format::Markdown, &claude(Some("id")));
    assert_eq!(
        crlf,
        "# A\r\n<!-- ait:session-id id -->\r\n\r\ntext\r\n\r\n## AI Sessions\r\n\r\n\
         - worktree: /srv/alpha · backend: claude · session: id"
    );
    let org = linked("\u{feff}#+TITLE: x\r\n* A", Format::Org, &claude(Some("id")));
    assert!(
        org.starts_with("\u{feff}#+TITLE: x\r\n#+SESSION_ID: id\r\n* A\r\n\r\n* AI Sessions\r\n"),
        "{org:?}"
    );
    assert!(org.ends_with(":END:"), "{org:?}");
    // bytes that are no text
    let bytes = b"# A\n\xff\xfe \x00\n";
    let out = link(bytes, Format::Markdown, &claude(None)).unwrap();
    assert!(out.starts_with(bytes), "{out:?}");
}

#[test]
fn what_only_looks_like_ours_is_the_users() {
    let fenced = "# T\n\n```\n## AI Sessions\n- worktree: /srv/alpha · backend: claude · session: x\n<!-- ait:session-id x -->\n```\n";
    assert!(told(fenced, Format::Markdown).is_empty());
    let text = linked(fenced, Format::Markdown, &claude(Some("id")));
    assert!(
        text.contains("session: x\n<!-- ait:session-id x -->\n```\n\n## AI Sessions\n\n- worktree"),
        "{text}"
    );
    let head = "---\ntitle: x\n---\ntext\n";
    assert!(
        linked(head, Format::Markdown, &claude(Some("id")))
            .starts_with("---\ntitle: x\n---\n<!-- ait:session-id id -->\ntext\n")
    );
    let after = "## AI Sessions ##\n\nProse of the user's\n\nOther\n=====\n- worktree: /a · backend: b\n";
    assert!(told(after, Format::Markdown).is_empty());
    let text = linked(after, Format::Markdown, &claude(None));
    assert!(
        text.starts_with("## AI Sessions ##\n\n- worktree: /srv/alpha · backend: claude\n\nProse of"),
        "{text}"
    );
    let open = "# T\n```\ncode";
    let text = linked(open, Format::Markdown, &claude(None));
    assert_eq!(told(&text, Format::Markdown), ["/srv/alpha claude -"], "{text}");
    assert!(text.ends_with("```\ncode"), "{text}");
    let org = "#+begin_example\n#+SESSION_ID: x\n#+end_example\n* DONE AI Sessions\n** a\n:PROPERTIES:\n:BACKEND: claude\n:END:\n";
    assert!(told(org, Format::Org).is_empty());
    let example = "#+TITLE: x\n#+begin_example\n#+SESSION_ID: x\n#+end_example\n";
    let text = linked(example, Format::Org, &claude(Some("id")));
    assert!(
        text.starts_with("#+TITLE: x\n#+SESSION_ID: id\n#+begin_example\n#+SESSION_ID: x\n#+end_example\n"),
        "{text}"
    );
    let tagged =
        "* Other\n** AI Sessions   :noexport:\n*** a\n:PROPERTIES:\n:WORKTREE: /srv/alpha\n:END:\n* Last\n";
    assert_eq!(told(tagged, Format::Org), ["/srv/alpha - -"]);
    let text = linked(tagged, Format::Org, &Link { worktree: "/srv/beta".into(), ..claude(None) });
    assert!(
        text.ends_with(
            ":END:\n*** beta · claude\n:PROPERTIES:\n:WORKTREE: /srv/beta\n:BACKEND: claude\n:END:\n* Last\n"
        ),
        "{text}"
    );
}

#[test]
fn what_separates_a_section_from_the_next_stays_there() {
    let org = "* AI Sessions\n** b\n:PROPERTIES:\n:WORKTREE: /srv/beta\n:END:\n\n\n* Next\n";
    let text = linked(org, Format::Org, &claude(None));
    assert!(text.ends_with(":WORKTREE: /srv/alpha\n:BACKEND: claude\n:END:\n\n\n* Next\n"), "{text}");
    let markdown = "## AI Sessions\n\n- worktree: /srv/beta\n\n\n## Next\n";
    let text = linked(markdown, Format::Markdown, &claude(None));
    assert!(text.ends_with("beta\n- worktree: /srv/alpha · backend: claude\n\n\n## Next\n"), "{text}");
}

#[test]
fn what_would_not_be_read_back_is_not_written() {
    for bad in ["", " a", "a\nb", "a · b", "a --> b"] {
        for format in [Format::Org, Format::Markdown] {
            let folder = Link { worktree: bad.into(), ..claude(None) };
            assert!(link(b"", format, &folder).is_err(), "{bad:?}");
            assert!(link(b"", format, &claude(Some(bad))).is_err(), "{bad:?}");
        }
    }
    assert_eq!(Format::of(Path::new("/a/b.ORG")), Some(Format::Org));
    assert_eq!(Format::of(Path::new("b.markdown")), Some(Format::Markdown));
    assert_eq!(Format::of(Path::new("b.toml")), None);
}

/// Lines as they stand in task files, and as they should not.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("# A task".to_owned()),
        Just("## AI Sessions".to_owned()),
        Just("* AI Sessions".to_owned()),
        Just("** alpha".to_owned()),
        Just("* Notes :tag:".to_owned()),
        Just("## Notes".to_owned()),
        Just(":PROPERTIES:".to_owned()),
        Just(":WORKTREE: /srv/alpha".to_owned()),
        Just(":WORKTREE: /srv/beta".to_owned()),
        Just(":BACKEND: claude".to_owned()),
        Just(":SESSION_ID: id-9".to_owned()),
        Just(":END:".to_owned()),
        Just("- worktree: /srv/alpha · backend: claude".to_owned()),
        Just("- worktree: /srv/alpha".to_owned()),
        Just("* worktree: /srv/beta · backend: codex · session: id-8".to_owned()),
        Just("#+SESSION_ID: <none>".to_owned()),
        Just("#+TITLE: x".to_owned()),
        Just("#+begin_src sh".to_owned()),
        Just("#+end_src".to_owned()),
        Just("<!-- ait:session-id id-7 -->".to_owned()),
        Just("```".to_owned()),
        Just("~~~~".to_owned()),
        Just("---".to_owned()),
        Just("===".to_owned()),
        Just(String::new()),
        "[ -~é]{0,12}",
    ]
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    let line = (line(), prop_oneof![3 => Just("\n"), 1 => Just("\r\n")]);
    (proptest::collection::vec(line, 0..14), any::<bool>(), any::<bool>()).prop_map(|(lines, cut, odd)| {
        let mut bytes: Vec<u8> =
            lines.iter().flat_map(|(line, end)| format!("{line}{end}").into_bytes()).collect();
        if odd {
            bytes.splice(0..0, [b'x', 0xff, b'\n']);
        }
        if cut {
            while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
                bytes.pop();
            }
        }
        bytes
    })
}

/// Whether a line is one that linking may have written or changed.
fn is_ours(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || line.starts_with("#+SESSION_ID:")
        || line.starts_with("<!-- ait:session-id")
        || line.starts_with("- worktree: ")
        || line.starts_with("* worktree: ")
        || line.trim_start_matches('*').starts_with(" alpha · claude")
        || ["## AI Sessions", "* AI Sessions", ":PROPERTIES:", ":END:"].contains(&line)
        || [":WORKTREE:", ":BACKEND:", ":SESSION_ID:"].iter().any(|name| line.starts_with(name))
}

/// The lines that are none of ours, whole.
fn foreign(bytes: &[u8]) -> Vec<Vec<u8>> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let foreign = lines.filter(|line| !is_ours(&String::from_utf8_lossy(line)));
    foreign
        .map(|line| {
            line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line)).to_vec()
        })
        .collect()
}

/// Pairs of line ends: how many of each.
fn ends(bytes: &[u8]) -> (usize, usize) {
    let crlf = bytes.windows(2).filter(|pair| *pair == b"\r\n").count();
    (crlf, bytes.iter().filter(|byte| **byte == b'\n').count() - crlf)
}

proptest! {
    #[test]
    fn linking_touches_its_own_lines_alone_and_is_read_back(
        bytes in file(),
        org in any::<bool>(),
        session in proptest::option::of(Just("id-1")),
    ) {
        let format = if org { Format::Org } else { Format::Markdown };
        let one = claude(session);
        let before = entries(&bytes, format);
        let out = link(&bytes, format, &one).unwrap();
        prop_assert_eq!(foreign(&out), foreign(&bytes));
        let ((crlf, lf), (crlf_then, lf_then)) = (ends(&bytes), ends(&out));
        prop_assert!(crlf_then >= crlf && lf_then >= lf, "no line end is lost");
        let after = entries(&out, format);
        let is = |entry: &Entry| {
            entry.worktree == one.worktree
                && entry.backend.as_deref() == Some("claude")
                && (session.is_none() || entry.session.as_deref() == session)
        };
        prop_assert!(after.iter().any(is), "{:?}\n{}", after, String::from_utf8_lossy(&out));
        prop_assert!(after.len() == before.len() || after.len() == before.len() + 1);
        let changed = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        prop_assert!(changed <= 1, "{:?} {:?}", before, after);
        prop_assert_eq!(link(&out, format, &one).unwrap(), out, "once");
    }

    #[test]
    fn lines_give_back_their_bytes(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r')], 0..60)) {
        prop_assert_eq!(Lines::new(&bytes).bytes(), bytes);
    }
}
