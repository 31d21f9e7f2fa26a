//! Sending: to raw receivers, byte for byte, and to agents, with a receipt that is true.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Asked, ait, data, envelope, habits, refusal};
use crate::support::proc::Process;
use crate::support::tmux::Pane;
use crate::support::{DEADLINE, Fake, Home, Ran, Tmux, wait_until};

/// A session whose program writes down every byte it is sent, below the screen of an agent that waits.
struct Receiver {
    id: String,
    pane: String,
    heard: PathBuf,
}

impl Receiver {
    #[track_caller]
    fn start(home: &Home, tmux: &Tmux, name: &str) -> Receiver {
        Receiver::asking(home, tmux, name, "")
    }

    /// One that asks its terminal for something first, in the words of `printf`.
    #[track_caller]
    fn asking(home: &Home, tmux: &Tmux, name: &str, asks: &str) -> Receiver {
        let heard = home.root().join(format!("{name}.heard"));
        let screen = "──────\\r\\n❯ \\r\\n──────\\r\\n  ? for shortcuts\\r\\n";
        let program = home.bin().join(name);
        home.script(
            name,
            &format!(
                "#!/bin/sh\nstty raw -echo\n: > '{0}'\nprintf '{asks}{screen}'\nexec cat >> '{0}'\n",
                heard.display()
            ),
        );
        let agent = Fake::claude(tmux, "main", name, &home.project("alpha"));
        let id = agent.adopt(tmux);
        let pane = agent.pane.id.clone();
        tmux.ok(["respawn-pane", "-k", "-t", &pane, program.to_str().unwrap(), name]);
        let pid: u32 = tmux.format(&pane, "#{pane_pid}").parse().unwrap();
        super::edit(home, |records| {
            for record in records.iter_mut().filter(|record| record["id"] == id.as_str()) {
                runs(record, pid);
            }
        });
        agent.screen_until(tmux, "the receiver", |screen| screen.contains("? for shortcuts"));
        Receiver { id, pane, heard }
    }

    fn heard(&self) -> Vec<u8> {
        std::fs::read(&self.heard).unwrap()
    }

    #[track_caller]
    fn hears(&self, what: &str, text: &[u8]) {
        wait_until(what, DEADLINE, || (self.heard().len() >= text.len()).then_some(()));
        assert!(self.heard() == text, "{what}: {} bytes, not {}", self.heard().len(), text.len());
    }

    fn forget(&self) {
        std::fs::OpenOptions::new().write(true).truncate(true).open(&self.heard).unwrap();
    }
}

/// The record's agent is the process `pid` now.
fn runs(record: &mut Value, pid: u32) {
    let process = Process::of(pid).unwrap();
    record["pane_pid"] = json!(pid);
    record["ait"]["pane_started"] = json!(process.started.to_string());
    record["ait"].as_object_mut().unwrap().remove("agent");
}

/// `ait send … --format json` with this text on its standard input.
#[track_caller]
fn send(home: &Home, id: &str, words: &[&str], text: &[u8]) -> Ran {
    let mut all = vec!["send", id, "--format", "json"];
    if !text.is_empty() {
        all.push("--text-stdin");
    }
    all.extend(words);
    Ran::feed(&mut home.ait_command(all), Some(text))
}

/// The word why it was refused.
#[track_caller]
fn reason(ran: &Ran) -> String {
    let error = &envelope(ran)["error"];
    assert_eq!(error["details"]["receipt"], "refused", "{error:#}");
    error["details"]["reason"].as_str().unwrap().to_owned()
}

/// Nothing that was sent is left on the server, in a log, or in the store.
#[track_caller]
fn leaves_nothing(home: &Home, tmux: &Tmux, text: &str) {
    assert_eq!(tmux.ok(["list-buffers"]), "", "no buffer is left");
    for entry in walk(&home.home().join(".local/state/ait")) {
        let held = std::fs::read(&entry).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&held).contains(text), "{}", entry.display());
    }
}

/// The file of its conversation; while it writes which one it has, nobody says which.
#[track_caller]
fn conversation(agent: &Fake) -> String {
    wait_until("its conversation's file", DEADLINE, || std::fs::read_to_string(agent.file()?).ok())
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn every_byte_arrives_as_it_is() {
    let home = Home::new();
    let tmux = habits(&home);
    let to = Receiver::start(&home, &tmux, "raw");
    let long = |n: usize| {
        let bytes = (0..n).map(|at| b"0123456789abcdef;#{x} \t\n\r%~"[(at * 7 + at / 13) % 27]);
        bytes.collect::<Vec<u8>>()
    };
    let mut texts: Vec<Vec<u8>> =
        [1, 1024, 1022, 1023, 1025, 1026, 4096, 16_384, 200 * 1024, 5 << 20].map(long).into();
    let words = [
        ";",
        "\\;",
        "a;",
        "#{pane_id}",
        "%end 1 2 0",
        "-",
        "--",
        "-t",
        "a\tb",
        "a\rb",
        "a\r\nb\n",
        "'\"$(x)`",
        "👩‍👩‍👧‍👦 🏳️‍🌈",
        "مرحبا שלום",
        "\u{202e}abc",
        "\u{1b}[A\u{3}\u{4}\u{7f}",
        " ",
        "\n",
    ];
    texts.extend(words.map(|word| word.as_bytes().to_vec()));
    for text in texts {
        to.forget();
        let what =
            format!("{} bytes: {:?}", text.len(), String::from_utf8_lossy(&text[..text.len().min(40)]));
        let told = data(&send(&home, &to.id, &[], &text).ok(), "send");
        assert_eq!(
            (&told["receipt"], &told["sent_text"]),
            (&json!("typed"), &json!(true)),
            "{what}: {told:#}"
        );
        to.hears(&what, &text);
    }
    for (text, why) in [(&b"a\0b"[..], "nul"), (b"a\x1b[201~b", "end_of_paste")] {
        to.forget();
        assert_eq!(reason(&send(&home, &to.id, &[], text).code(12)), why);
    }
    assert_eq!(to.heard(), b"");
    assert_eq!(tmux.ok(["list-buffers"]), "");
}

#[test]
fn who_asked_for_brackets_gets_a_text_between_them_and_its_lines_as_they_are() {
    let home = Home::new();
    let tmux = habits(&home);
    let to = Receiver::asking(&home, &tmux, "bracketed", "\\033[?2004h");
    data(&send(&home, &to.id, &[], b"one\ntwo; #{x}\n").ok(), "send");
    to.hears("the text", b"\x1b[200~one\ntwo; #{x}\n\x1b[201~");
    to.forget();
    data(&send(&home, &to.id, &["--key", "home", "--key", "page-down"], b"").ok(), "send");
    to.hears("keys are no text", b"\x1b[1~\x1b[6~");
    // in copy mode tmux puts no brackets around it: what is one text only between them is not sent there
    tmux.ok(["copy-mode", "-t", &to.pane]);
    to.forget();
    for text in [&b"one\ntwo"[..], b"one\rtwo", b"a\tb", b"a\x1b[A"] {
        assert_eq!(reason(&send(&home, &to.id, &["--submit"], text).code(12)), "in_mode", "{text:?}");
    }
    data(&send(&home, &to.id, &["--force"], b"forced\n").ok(), "send");
    to.hears("only what is forced", b"forced\n");
    tmux.ok(["send-keys", "-X", "-t", &to.pane, "cancel"]);
    to.forget();
    data(&send(&home, &to.id, &["--key", "home", "--key", "page-down"], b"").ok(), "send");
    // what would end the brackets is not sent
    assert_eq!(reason(&send(&home, &to.id, &[], b"a\x1b[201~b").code(12)), "end_of_paste");
    to.hears("no more than that", b"\x1b[1~\x1b[6~");
}

#[test]
fn the_same_bytes_from_a_file_and_words() {
    let home = Home::new();
    let tmux = habits(&home);
    let to = Receiver::start(&home, &tmux, "raw");
    let file = home.root().join("text");
    std::fs::write(&file, "from a file;\n").unwrap();
    data(&send(&home, &to.id, &["--paste-file", file.to_str().unwrap()], b"").ok(), "send");
    to.hears("the file", b"from a file;\n");
    data(&send(&home, &to.id, &["--text", "-x"], b"").ok(), "send");
    to.hears("the word", b"from a file;\n-x");
    let asked = Asked::of(&home);
    for (words, code) in [
        (&[][..], "empty-send"),
        (&["--text", ""], "empty-send"),
        (&["--text", "a", "--text-stdin"], "multiple-text-sources"),
        // its value was left out
        (&["--text", "--submit"], "option-as-text"),
        (&["--text", "--key=enter"], "option-as-text"),
    ] {
        assert_eq!(refusal(&send(&home, &to.id, words, b"").code(64)), code, "{words:?}");
    }
    assert_eq!(asked.calls(), [[""; 0]; 0], "tmux is asked nothing");
    drop(asked);
    to.forget();
    data(&send(&home, &to.id, &["--text=--submit"], b"").ok(), "send");
    data(&send(&home, &to.id, &["--text", "--not-one of ours"], b"").ok(), "send");
    to.hears("what was meant so", b"--submit--not-one of ours");
    let text = home.ait(["send", &to.id, "--text", "y"]).ok().text();
    assert_eq!(text, format!("sent text to {}: typed", to.id));
}

#[test]
fn keys_go_one_by_one_and_not_where_a_mode_or_others_would_get_them() {
    let home = Home::new();
    let tmux = habits(&home);
    let to = Receiver::start(&home, &tmux, "raw");
    let words =
        ["--key", "c-c", "--key", "escape", "--key", "backspace", "--key", "shift-tab", "--key", "up"];
    let asked = Asked::of(&home);
    data(&send(&home, &to.id, &words, b"").ok(), "send");
    to.hears("the keys", b"\x03\x1b\x7f\x1b[Z\x1b[A");
    for verb in ["load-buffer", "set-buffer", "paste-buffer -"] {
        assert_eq!(asked.with(verb), [[""; 0]; 0], "no key goes through a buffer");
    }
    drop(asked);
    assert_eq!(home.ait(["send", &to.id, "--key", "f13"]).status.code(), Some(64));
    // copy mode: a key is refused, a text and Enter arrive
    to.forget();
    tmux.ok(["copy-mode", "-t", &to.pane]);
    assert_eq!(reason(&send(&home, &to.id, &["--key", "up"], b"").code(12)), "in_mode");
    assert_eq!(reason(&send(&home, &to.id, &["--key", "up"], b"text").code(12)), "in_mode");
    data(&send(&home, &to.id, &["--key", "enter"], b"").ok(), "send");
    data(&send(&home, &to.id, &[], b"text").ok(), "send");
    to.hears("Enter and text in copy mode", b"\rtext");
    tmux.ok(["send-keys", "-X", "-t", &to.pane, "cancel"]);
    // synchronized panes: nobody else gets the text
    to.forget();
    let beside = home.root().join("beside");
    let program = format!("stty raw -echo; : > '{0}'; exec cat >> '{0}'", beside.display());
    let pane = Pane { id: to.pane.clone(), ..tmux.panes()[0].clone() };
    tmux.split(&pane, home.root(), &["sh", "-c", &program]);
    wait_until("the pane beside it", DEADLINE, || beside.exists().then_some(()));
    tmux.ok(["set-option", "-w", "-t", &to.pane, "synchronize-panes", "on"]);
    assert_eq!(reason(&send(&home, &to.id, &["--key", "up"], b"").code(12)), "synchronized");
    data(&send(&home, &to.id, &["--key", "enter"], b"").ok(), "send");
    data(&send(&home, &to.id, &["--force", "--key", "down"], b"").ok(), "send");
    to.hears("Enter, and the key that was forced", b"\r\x1b[B");
    wait_until("the key in both panes", DEADLINE, || {
        (std::fs::read(&beside).unwrap() == b"\x1b[B").then_some(())
    });
}

/// A program may ask for every key with its modifiers; an Enter that follows a text is none that was typed with one.
#[test]
fn enter_is_a_plain_return_where_keys_come_with_their_modifiers() {
    let home = Home::new();
    let tmux = habits(&home);
    for always in ["always", "on"] {
        tmux.ok(["set-option", "-s", "extended-keys", always]);
        let to = Receiver::asking(&home, &tmux, &format!("keys-{always}"), "\\033[>4;2m\\033[>1u");
        // that it is so: what is typed with a modifier is told with it
        tmux.ok(["send-keys", "-t", &to.pane, "C-Enter"]);
        let told = wait_until("a key with its modifier", DEADLINE, || {
            let heard = to.heard();
            (heard.ends_with(b"u") || heard.ends_with(b"~")).then_some(heard)
        });
        assert!([&b"\x1b[13;5u"[..], b"\x1b[27;5;13~"].contains(&&told[..]), "{told:?}");
        to.forget();
        send(&home, &to.id, &["--key", "enter"], b"").ok();
        to.hears("Enter alone", b"\r");
        to.forget();
        let ran = send(&home, &to.id, &["--key", "enter"], b"one;\ttwo");
        assert!([Some(0), Some(10), Some(11)].contains(&ran.status.code()), "{ran}");
        wait_until("the text and its Enter", DEADLINE, || to.heard().ends_with(b"\r").then_some(()));
        let heard = to.heard();
        let enters = heard.strip_prefix(b"one;\ttwo").unwrap_or_else(|| panic!("{heard:?}"));
        assert!(enters.iter().all(|byte| *byte == b'\r'), "{heard:?}");
    }
}

#[test]
fn sends_side_by_side_do_not_mix() {
    let home = Home::new();
    let tmux = habits(&home);
    let two = ["one", "two"].map(|name| Receiver::start(&home, &tmux, name));
    let runs: Vec<_> = (0..20)
        .map(|at| {
            let (home, id) = (home.clone(), two[at % 2].id.clone());
            std::thread::spawn(move || {
                let text = format!("<{at}:{}>", "x".repeat(3000));
                send(&home, &id, &["--key", "up"], text.as_bytes()).ok();
            })
        })
        .collect();
    for run in runs {
        run.join().unwrap();
    }
    for (at, to) in two.iter().enumerate() {
        wait_until("all of them", DEADLINE, || {
            (to.heard().iter().filter(|byte| **byte == b'A').count() == 10).then_some(())
        });
        let heard = String::from_utf8(to.heard()).unwrap();
        for number in 0..20 {
            // each with its key, before the next one begins
            let text = format!("<{number}:{}>\u{1b}[A", "x".repeat(3000));
            assert_eq!(heard.matches(&text).count(), usize::from(number % 2 == at), "{number} in {at}");
        }
    }
    assert_eq!(tmux.ok(["list-buffers"]), "");
}

#[test]
fn into_a_pane_that_dies_meanwhile() {
    let home = Home::new();
    let tmux = habits(&home);
    let server = tmux.server();
    let times = if std::env::var_os("AIT_TEST_FULL").is_some_and(|full| full == "1") { 500 } else { 60 };
    let mut seen = [0, 0];
    let to = Receiver::start(&home, &tmux, "raw");
    let pids = home.record(&to.id).unwrap();
    for at in 0..times {
        to.forget();
        tmux.ok(["respawn-pane", "-k", "-t", &to.pane, home.bin().join("raw").to_str().unwrap(), "raw"]);
        let pid: u32 = tmux.format(&to.pane, "#{pane_pid}").parse().unwrap();
        super::edit(&home, |records| runs(&mut records[0], pid));
        wait_until("the receiver", DEADLINE, || {
            tmux.run(["capture-pane", "-p", "-t", &to.pane]).text().contains("? for").then_some(())
        });
        // it dies as the buffer is loaded, or a little later
        let late = ["", "(", "sleep 0.001; ", "sleep 0.004; "][at % 4];
        let kill = if late == "(" { format!("(kill -9 {pid} &)") } else { format!("{late}kill -9 {pid}") };
        home.wrap_tmux(&format!(
            "case \"$*\" in *load-buffer*) \"$TMUX_REAL\" \"$@\"; code=$?; {kill}; exit $code;; esac\nexec \"$TMUX_REAL\" \"$@\""
        ));
        let ran = send(&home, &to.id, &[], b"text");
        home.unwrap_tmux();
        match ran.status.code() {
            Some(12) => {
                assert_eq!(reason(&ran), "not_running");
                assert_eq!(to.heard(), b"", "refused is not written");
                seen[0] += 1;
            }
            Some(0) => {
                assert_eq!(data(&ran, "send")["receipt"], "typed");
                seen[1] += 1;
            }
            _ => panic!("{ran}"),
        }
        assert!(server.alive(), "the server lives after {at}");
        assert_eq!(tmux.ok(["list-buffers"]), "");
    }
    println!("{times} deaths: {} refused, {} typed ({pids})", seen[0], seen[1]);
    assert!(seen[0] > 0, "some were refused");
}

#[test]
fn a_prompt_is_submitted_and_its_hook_says_so() {
    let home = Home::new();
    let tmux = habits(&home);
    home.hooked("claude");
    // the file comes later than the hook
    home.manners("claude", json!({"late_flush_ms": 3000}));
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    let id = agent.adopt(&tmux);
    let text = "first line; $(x)\nsecond #{pane_id} line\n";
    let asked = Asked::of(&home);
    let ran = send(&home, &id, &["--submit"], text.as_bytes()).ok();
    let told = data(&ran, "send");
    assert_eq!((&told["receipt"], &told["proof"]), (&json!("submitted"), &json!("hook")), "{told:#}");
    for part in ["first line", "second #{pane_id} line"] {
        assert_eq!(asked.with(part), [[""; 0]; 0], "the text stands in no command line");
        assert!(!ran.to_string().contains(part), "{ran}");
    }
    drop(asked);
    assert_eq!((&told["newline_omitted"], &told["keys"]), (&json!(true), &json!(["enter"])), "{told:#}");
    wait_until("one turn", DEADLINE, || (agent.turns() == 1).then_some(()));
    let held = conversation(&agent);
    let whole = r#":"first line; $(x)\nsecond #{pane_id} line""#;
    assert!(held.contains(whole), "without the line end: {held}");
    leaves_nothing(&home, &tmux, "second #{pane_id} line");
}

#[test]
fn a_first_prompt_that_was_not_taken_is_said_and_enter_hands_it_in() {
    let home = Home::new();
    let _tmux = habits(&home);
    home.manners("claude", json!({"missed_enters": 2}));
    let ran = ait(&home, &["start", "--agent", "claude", "--prompt", "first", "--format", "json"]).ok();
    let warnings = envelope(&ran)["warnings"].to_string();
    let seen = data(&ran, "start");
    let id = seen["id"].as_str().unwrap();
    assert!(warnings.contains(&format!("ait send {id} --key enter")), "{ran}");
    let conversation = seen["provider_resume"]["session_id"].as_str().unwrap();
    assert_eq!(home.turns("claude", conversation), 0);
    data(&send(&home, id, &["--key", "enter"], b"").ok(), "send");
    wait_until("one turn", DEADLINE, || (home.turns("claude", conversation) == 1).then_some(()));
}

#[test]
fn without_a_hook_the_conversation_or_the_screen_says_so() {
    let home = Home::new();
    let tmux = habits(&home);
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    let id = agent.adopt(&tmux);
    let told = data(&send(&home, &id, &["--key", "enter"], b"what is told by the file").ok(), "send");
    assert_eq!(told["receipt"], "submitted", "{told:#}");
    assert!(["transcript", "screen"].contains(&told["proof"].as_str().unwrap()), "{told:#}");
    wait_until("one turn", DEADLINE, || (agent.turns() == 1).then_some(()));
}

#[test]
fn a_key_makes_it_once() {
    let home = Home::new();
    let tmux = habits(&home);
    let to = Receiver::start(&home, &tmux, "raw");
    let words = ["--idempotency-key", "k1"];
    let first = data(&send(&home, &to.id, &words, b"once").ok(), "send");
    let again = data(&send(&home, &to.id, &words, b"once").ok(), "send");
    assert_eq!((&first["repeated"], &again["repeated"]), (&json!(false), &json!(true)));
    assert_eq!(reason(&send(&home, &to.id, &words, b"other").code(12)), "other_text");
    to.hears("the text once", b"once");
    leaves_nothing(&home, &tmux, "once\"");
}

#[test]
fn a_key_is_sent_to_nobody_while_the_file_of_earlier_keys_is_broken() {
    let home = Home::new();
    let tmux = habits(&home);
    let to = Receiver::start(&home, &tmux, "raw");
    let words = ["--idempotency-key", "k1"];
    data(&send(&home, &to.id, &words, b"once").ok(), "send");
    let file = home.home().join(".local/state/ait/sessions").join(&to.id).join("sends.json");
    std::fs::write(&file, "{").unwrap();
    let refused = send(&home, &to.id, &words, b"once").code(12);
    assert_eq!(reason(&refused), "keys_unreadable");
    let hint = &envelope(&refused)["error"]["hint"];
    assert!(hint.as_str().is_some_and(|hint| hint.contains("remove it")), "{refused}");
    std::fs::remove_file(&file).unwrap();
    data(&send(&home, &to.id, &["--idempotency-key", "k2"], b" more").ok(), "send");
    to.hears("each text once", b"once more");
}

#[test]
fn what_was_not_taken_is_not_called_submitted() {
    let home = Home::new();
    let tmux = habits(&home);
    let to = Receiver::start(&home, &tmux, "raw");
    // it takes bytes, shows nothing, and submits nothing
    let told = data_of(&send(&home, &to.id, &["--submit"], b"text").code(11));
    assert_eq!((&told["receipt"], &told["proof"]), (&json!("unconfirmed"), &Value::Null), "{told:#}");
    to.hears("the text and one Enter", b"text\r");
}

#[test]
fn an_enter_that_was_missed_is_pressed_once_more_and_the_text_never_again() {
    let home = Home::new();
    let tmux = habits(&home);
    home.hooked("claude");
    home.manners("claude", json!({"missed_enters": 1}));
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    let told = data(&send(&home, &agent.adopt(&tmux), &["--submit"], b"only once").ok(), "send");
    assert_eq!((&told["receipt"], &told["enter_repeated"]), (&json!("submitted"), &json!(true)), "{told:#}");
    wait_until("one turn", DEADLINE, || (agent.turns() == 1).then_some(()));
    assert_eq!(conversation(&agent).matches("\"only once\"").count(), 1);
    // one that takes none: it stands in the prompt line, and no later key goes after it
    home.manners("claude", json!({"missed_enters": 100}));
    let words = ["--session-id", &crate::support::fake::new_id()];
    let other = Fake::window(&tmux, "main", "shop", &home.project("beta"), "claude", &words).up(&tmux);
    let id = other.adopt(&tmux);
    let words = ["--key", "enter", "--key", "c-c"];
    let told = data(&send(&home, &id, &words, b"it stays").code(10), "send");
    assert_eq!((&told["receipt"], &told["enter_repeated"]), (&json!("typed"), &json!(true)), "{told:#}");
    assert!(other.screen(&tmux).contains("❯ it stays\n"), "{}", other.screen(&tmux));
    // the earlier command line fails only where nothing was written
    let words = ["send", &id, "--text", " and stays", "--key", "enter"];
    super::called::called(&home, &words).code(1);
    super::called::called(&home, &[&words[..], &["--force"]].concat()).ok();
    assert!(other.screen(&tmux).contains("❯ it stays and stays\n"), "{}", other.screen(&tmux));
}

#[track_caller]
fn data_of(ran: &Ran) -> Value {
    data(ran, "send")
}

#[test]
fn a_draft_and_a_dialog_are_left_alone() {
    let home = Home::new();
    let tmux = habits(&home);
    home.manners("claude", json!({"draft": "half a thought"}));
    let agent = Fake::claude(&tmux, "main", "cart", &home.project("alpha"));
    let id = agent.adopt(&tmux);
    agent.screen_until(&tmux, "the draft", |screen| screen.contains("half a thought"));
    assert_eq!(reason(&send(&home, &id, &["--submit"], b"more").code(12)), "composer");
    assert!(!agent.screen(&tmux).contains("more"));
    let told = data(&send(&home, &id, &["--submit", "--force"], b" and the rest").ok(), "send");
    assert_eq!(told["receipt"], "submitted", "{told:#}");
    agent.said_until(&tmux, "half a thought and the rest");
    // one that asks takes the answer, and no prompt
    agent.ready(&tmux);
    agent.say(&tmux, "may I [[ask]]");
    agent.screen_until(&tmux, "its question", |screen| screen.contains("Do you want"));
    assert_eq!(reason(&send(&home, &id, &["--submit"], b"a prompt").code(12)), "needs_input");
    data(&send(&home, &id, &["--key", "enter"], b"").ok(), "send");
    agent.ready(&tmux);
    assert!(!agent.screen(&tmux).contains("a prompt"), "{}", agent.screen(&tmux));
    home.manners("claude", json!({"dialog": "trust"}));
    let words = ["--session-id", &crate::support::fake::new_id()];
    let other = Fake::window(&tmux, "main", "shop", &home.project("alpha"), "claude", &words);
    other.screen_until(&tmux, "its dialog", |screen| screen.contains("trust"));
    let id = other.adopt(&tmux);
    assert_eq!(reason(&send(&home, &id, &["--submit"], b"yes").code(12)), "dialog");
    // keys are how a dialog is answered; its first choice is to leave
    data(&send(&home, &id, &["--key", "down", "--key", "enter"], b"").ok(), "send");
    other.ready(&tmux);
}

#[test]
fn one_that_is_stopped_is_sent_nothing() {
    let home = Home::new();
    let tmux = habits(&home);
    let to = Receiver::start(&home, &tmux, "raw");
    tmux.ok(["kill-pane", "-t", &to.pane]);
    let ran = send(&home, &to.id, &[], b"text").code(12);
    assert_eq!(refusal(&ran), "session-not-running");
    assert_eq!(reason(&ran), "not_running");
    assert_eq!(to.heard(), b"");
}
