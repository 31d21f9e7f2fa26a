//! What only a real tmux can confirm: that it reads our lines as we mean them and answers as we count. The tmux is
//! `AIT_TEST_TMUX`, else `tmux`, on a private socket that no one else knows.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command as Process, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tmux_control::{Block, Command, Decoder, Event, Limits, Replies};

/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of our own with one control client, which has attached.
struct Client {
    folder: TempDir,
    child: Child,
    input: Option<ChildStdin>,
    pieces: Receiver<Vec<u8>>,
    reader: Option<JoinHandle<()>>,
    decoder: Decoder,
    replies: Replies<usize>,
}

/// An answer: which request, whether it went well, its body.
type Answer = (usize, bool, Vec<u8>);

impl Client {
    fn attach() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = tmux(&folder)
            .args(["-C", "new-session", "-x", "80", "-y", "24", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let (sender, pieces) = sync_channel(64);
        let reader = thread::spawn(move || {
            let mut piece = [0; 65_536];
            while let Ok(length @ 1..) = output.read(&mut piece) {
                // Read on after the test has lost interest: tmux waits for a client that does not read.
                let _ = sender.send(piece[..length].to_vec());
            }
        });
        let input = child.stdin.take();
        let mut client = Self {
            folder,
            child,
            input,
            pieces,
            reader: Some(reader),
            decoder: Decoder::new(Limits::default()),
            replies: Replies::new(10_000),
        };
        // Nothing may be written before the attach is answered: 3.3a could run it first.
        while client.replies.attached().is_none() {
            client.read(&mut |_, _| {});
        }
        assert_eq!(client.replies.attached(), Some(true));
        client
    }

    /// Writes one line that brings one block.
    fn ask(&mut self, request: usize, line: &[u8]) {
        self.replies.push(request).unwrap();
        self.input.as_mut().unwrap().write_all(line).unwrap();
    }

    /// Writes a line that brings any number of blocks, and its marker.
    fn ask_until(&mut self, request: usize, line: &[u8]) {
        let marker = format!("MARK{request}");
        self.replies.push_until(request, marker.as_bytes()).unwrap();
        let marker = Command::new("display-message").args(["-p", &marker]).to_line().unwrap();
        self.input.as_mut().unwrap().write_all(&[line, &marker].concat()).unwrap();
    }

    /// Waits until no request waits.
    fn answers(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        while !self.replies.is_empty() {
            self.read(&mut |request, block| {
                if let Some(request) = request {
                    answers.push((request, block.ok, block.body.to_vec()));
                }
            });
        }
        answers
    }

    /// Waits for the next block of this client, whether or not it ends a request.
    fn next_block(&mut self) -> Vec<(bool, Vec<u8>)> {
        let mut blocks = Vec::new();
        while blocks.is_empty() {
            self.read(&mut |_, block| {
                if block.from_client() {
                    blocks.push((block.ok, block.body.to_vec()));
                }
            });
        }
        blocks
    }

    fn read(&mut self, each: &mut dyn FnMut(Option<usize>, &Block<'_>)) {
        let piece = self.pieces.recv_timeout(PATIENCE).expect("tmux goes on talking");
        self.decoder.push(&piece);
        while let Some(event) = self.decoder.next_event() {
            if let Event::Block(block) = event {
                each(self.replies.take(&block), &block);
            }
        }
    }

    fn outside(&self, arguments: &[&str]) -> Output {
        tmux(&self.folder).args(arguments).output().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = tmux(&self.folder).arg("kill-server").output();
        self.input.take();
        let until = Instant::now() + PATIENCE;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > until {
                let _ = self.child.kill();
            }
            // Waiting for the end is reading to the end.
            let _ = self.pieces.recv_timeout(Duration::from_millis(10));
        }
        while self.pieces.recv().is_ok() {}
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn tmux(folder: &TempDir) -> Process {
    let mut process = Process::new(std::env::var_os("AIT_TEST_TMUX").unwrap_or_else(|| "tmux".into()));
    process
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.path())
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/sh")
        .args(["-u", "-f", "/dev/null", "-S"])
        .arg(folder.path().join("socket"))
        .stdin(Stdio::null());
    process
}

fn line(command: Command) -> Vec<u8> {
    command.to_line().unwrap()
}

#[test]
fn tmux_reads_each_word_as_it_was_given() {
    let mut client = Client::attach();
    let mut words: Vec<Vec<u8>> = [
        "$1",
        "$HOME",
        "${HOME}",
        "%0:on",
        "%",
        "%x",
        "%1",
        "%if",
        ";",
        "a;",
        ";a",
        "a ; b",
        "#",
        "# x",
        "a#b",
        "#{pid}",
        "~",
        "~root",
        "{",
        "}",
        "{ x }",
        "'",
        "''",
        "it's",
        "\"",
        "\"a b\"",
        "\\",
        "\\\\",
        "a\\",
        "\\n",
        "\\;",
        " ",
        "  a  ",
        "\t",
        "a\tb",
        "-x",
        "--",
        "a=b",
        "é😀",
        "cr\r",
        "%begin 1 2 1",
        "*",
        "?",
        "[a]",
        "!",
        "&",
        "|",
        "<>",
        "`x`",
        "^",
        ",",
    ]
    .map(|word| word.as_bytes().to_vec())
    .to_vec();
    words.push((1..=0xfe).collect());
    words.extend((1..=0xfe).map(|byte| vec![byte]));
    words.push(b"one\ntwo\n\n'three'\n".to_vec());
    let mut unlike = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let file = client.folder.path().join(format!("word{place}"));
        let name = file.to_str().unwrap().to_owned();
        client.ask(0, &line(Command::new("set-buffer").args(["-b", "word", "--"]).arg(word)));
        client.ask(1, &line(Command::new("save-buffer").args(["-b", "word", &name])));
        let answers = client.answers();
        let read = std::fs::read(&file).unwrap_or_default();
        if !answers.iter().all(|answer| answer.1) || read != *word {
            unlike.push(format!(
                "{:?} came as {:?}: {answers:?}",
                word.escape_ascii().to_string(),
                read.escape_ascii().to_string()
            ));
        }
    }
    assert!(unlike.is_empty(), "{}", unlike.join("\n"));
}

#[test]
fn commands_within_commands_arrive_as_they_were_given() {
    let mut client = Client::attach();
    let file = client.folder.path().join("word");
    let word = "it's \"$1\" \\ ; {#}";
    let inner = [
        Command::new("set-buffer").args(["-b", "x", "--", word]),
        Command::new("save-buffer").args(["-b", "x"]).arg(file.to_str().unwrap()),
    ];
    client.ask_until(7, &line(Command::new("if-shell").args(["-F", "1"]).commands(inner)));
    assert_eq!(client.answers(), [(7, true, b"MARK7\n".to_vec())]);
    assert_eq!(std::fs::read(file).unwrap(), word.as_bytes());
}

#[test]
fn five_thousand_lines_written_at_once_are_answered_in_order() {
    const LINES: usize = 5000;
    let mut client = Client::attach();
    // A hook of our own command writes a block with flags 0 after each answer.
    client.ask(
        0,
        &line(
            Command::new("set-hook")
                .args(["-g", "after-set-option"])
                .commands([Command::new("display-message").args(["-p", "hook"])]),
        ),
    );
    client.answers();
    let mut lines = Vec::new();
    for request in 0..LINES {
        client.replies.push(request).unwrap();
        lines.extend(match request % 50 {
            0 => line(Command::new("set-option").args(["-g", "@x", &request.to_string()])),
            _ => line(Command::new("display-message").args(["-p", &request.to_string()])),
        });
    }
    let mut input = client.input.take().unwrap();
    let writer = thread::spawn(move || {
        input.write_all(&lines).unwrap();
        input
    });
    let answers = client.answers();
    client.input = Some(writer.join().unwrap());
    assert_eq!(answers.len(), LINES);
    for (place, (request, ok, body)) in answers.iter().enumerate() {
        let expected = if place % 50 == 0 { String::new() } else { format!("{place}\n") };
        assert_eq!((*request, *ok, &body[..]), (place, true, expected.as_bytes()));
    }
}

#[test]
fn a_group_whose_first_command_fails_is_one_failed_block() {
    let mut client = Client::attach();
    client.ask(1, b"kill-pane -t %999 ; display-message -p never\n");
    client.ask(2, b"bogus\n");
    client.ask(3, b"display-message -p after\n");
    let answers = client.answers();
    assert_eq!(
        answers.iter().map(|answer| (answer.0, answer.1)).collect::<Vec<_>>(),
        [(1, false), (2, false), (3, true)]
    );
    assert!(answers[0].2.starts_with(b"can't find pane"));
    assert!(answers[1].2.starts_with(b"parse error"));
    assert_eq!(answers[2].2, b"after\n");
}

#[test]
fn a_command_that_waits_is_answered_at_once_and_its_marker_when_it_is_done() {
    let mut client = Client::attach();
    client.ask_until(1, &line(Command::new("wait-for").arg("channel")));
    // Accepted, and nothing more: the marker waits behind the command.
    assert_eq!(client.next_block(), [(true, Vec::new())]);
    assert_eq!(client.replies.len(), 1);
    assert!(client.outside(&["wait-for", "-S", "channel"]).status.success());
    assert_eq!(client.answers(), [(1, true, b"MARK1\n".to_vec())]);
}

#[test]
fn a_guard_that_refuses_and_one_that_lets_pass_are_both_told() {
    let mut client = Client::attach();
    for (request, condition, expected) in [(1, "1", &b"done\n"[..]), (2, "0", b"refused\n")] {
        let guarded = Command::new("if-shell")
            .args(["-F", condition])
            .commands([Command::new("display-message").args(["-p", "done"])])
            .commands([Command::new("display-message").args(["-p", "refused"])]);
        client.ask_until(request, &line(guarded));
        let mut bodies = Vec::new();
        while !client.replies.is_empty() {
            client.read(&mut |_, block| bodies.push(block.body.to_vec()));
        }
        assert_eq!(bodies, [b"".to_vec(), expected.to_vec(), format!("MARK{request}\n").into_bytes()]);
    }
}

#[test]
fn a_word_that_begins_with_a_percent_sign_is_understood_quoted() {
    let mut client = Client::attach();
    client.ask(1, b"refresh-client -A %0:on\n");
    client.ask(2, &line(Command::new("refresh-client").args(["-A", "%0:on"])));
    client.ask(3, &line(Command::new("display-message").args(["-p", "-t", "%0", "#{pane_id}"])));
    let answers: Vec<_> = client.answers().into_iter().map(|answer| answer.1).collect();
    assert_eq!(answers, [false, true, true]);
}
