//! Plain processes: bounds, deadlines, names as bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use ait::tmux::{OneShot, Probe, Unanswered, listing, probe};
use ait::world::mark::Mark;
use ait::world::rows::NAME_LIMIT;

use super::{ClientEvent, attach, listed, server, until};
use crate::support::tmux::Start;
use crate::support::{Home, Tmux, proc, wait_for};

#[tokio::test]
async fn names_come_back_as_the_bytes_tmux_keeps_in_every_locale() {
    let home = Home::new();
    for locale in ["C.UTF-8", "C"] {
        let start = Start {
            environment: vec![
                ("LANG".to_owned(), locale.to_owned()),
                ("LC_ALL".to_owned(), locale.to_owned()),
            ],
            ..Start::default()
        };
        let tmux = Tmux::start_with(&home, start);
        let (client, mut events) = attach(&tmux).await;
        let long = "x".repeat(300);
        let longer = "é".repeat(NAME_LIMIT);
        let names: [&[u8]; 14] = [
            b"plain",
            b"a b|c",
            b"tab\there",
            b"line\nfeed",
            b"##{pid} ##(true) ##[fg=red]",
            b"it's \"quoted\" $HOME ${HOME} `x`",
            "\u{1f600} h\u{e9}".as_bytes(),
            b"invalid \xff\xfe utf-8",
            b"a:b.c",
            b" lead and trail ",
            b"%end 1 2 1",
            b"-flag",
            long.as_bytes(),
            longer.as_bytes(),
        ];
        for name in names {
            let set = tmux.run([
                OsStr::new("rename-window"),
                OsStr::new("-t"),
                OsStr::new("@0"),
                OsStr::new("--"),
                OsStr::from_bytes(name),
            ]);
            if !set.status.success() {
                // 3.7 and later refuse control characters and invalid text
                continue;
            }
            let window = |rows: ait::world::rows::Snapshot| {
                rows.windows.into_iter().find(|row| row.id.0 == 0).unwrap().name
            };
            let by_client = window(listed(&client).await);
            let by_process = window(listing::snapshot(&server(&tmux)).await.unwrap());
            assert_eq!(by_client, by_process, "{locale}: {}", name.escape_ascii());
            if by_client.len() < NAME_LIMIT {
                until(&mut events, |event| match event {
                    ClientEvent::Mark(Mark::WindowRenamed { window, name }) => {
                        (window.0 == 0 && *name == by_client).then_some(())
                    }
                    _ => None,
                })
                .await;
            }
            if name.iter().all(|byte| matches!(byte, b' '..=b'~') && !b"#$\\".contains(byte)) {
                assert_eq!(by_client, name, "{locale}");
            }
        }
    }
}

#[tokio::test]
async fn sessions_panes_and_stamps_are_listed_whole() {
    let home = Home::new();
    let configuration =
        "set -g base-index 1\nset -g pane-base-index 1\nset -g renumber-windows on\n".to_owned();
    let tmux = Tmux::start_with(&home, Start { configuration, ..Start::default() });
    let one = tmux.window("main", "one", &home.home(), &["sleep", "1000"]);
    let two = tmux.split(&one, &home.home(), &["sh", "-c", "sleep 1000; : frozenagent"]);
    let stranger = tmux.split(&one, &home.home(), &["sleep", "1000"]);
    tmux.ok(["set-option", "-p", "-t", &stranger.id, "@aitask_standin_ready", "1"]);
    tmux.ok(["new-session", "-d", "-t", "=main", "-s", "grouped"]);
    tmux.session("other", &home.home(), &["sleep", "1000"]);
    tmux.ok(["link-window", "-s", &one.window, "-t", "=other:9"]);
    for (option, value) in [
        ("@aitask_record", "0a1b2c3d"),
        ("@aitask_standin_ready", "1"),
        ("@aitask_restore_attempt", "0a1b2c3d:n"),
    ] {
        tmux.ok(["set-option", "-p", "-t", &two.id, option, value]);
    }
    tmux.ok(["select-pane", "-t", &two.id, "-T", "a title\u{2733}"]);

    let rows = listing::snapshot(&server(&tmux)).await.unwrap();
    let name = |id| rows.sessions.iter().find(|row| row.id == id).unwrap().name.to_string();
    assert_eq!(rows.sessions.iter().filter(|row| row.group == "main").count(), 2);
    let mut links: Vec<(String, i64)> = rows
        .windows
        .iter()
        .filter(|row| row.id.to_string() == one.window)
        .map(|row| (name(row.session), row.index))
        .collect();
    links.sort();
    assert_eq!(links, [("grouped".to_owned(), 2), ("main".to_owned(), 2), ("other".to_owned(), 9)]);
    let pane = rows.panes.iter().find(|row| row.id.to_string() == two.id).unwrap();
    assert_eq!(pane.pid, Some(two.pid as i32));
    assert_eq!((&pane.stamp, pane.ready, &pane.attempt), (&"0a1b2c3d".into(), true, &"0a1b2c3d:n".into()));
    assert_eq!(pane.title, "a title\u{2733}");
    let stranger = rows.panes.iter().find(|row| row.id.to_string() == stranger.id).unwrap();
    assert!(!stranger.ready, "the mark of a viewer that was there before");
    let bare = rows.panes.iter().find(|row| row.id.to_string() == one.id).unwrap();
    assert!(bare.stamp.is_empty() && !bare.ready, "a stamp is of one pane");
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_a_missing_server_is_none() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let asked = server(&tmux);
    match asked.run(["list-panes", "-t", "%77"]).await {
        Err(Unanswered::Refused { words }) => assert_eq!(words, "can't find pane: %77"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(asked.run(["bogus"]).await, Err(Unanswered::Refused { .. })));
    assert!(
        matches!(probe(tmux.socket()), Probe::Listening(peer) if peer.pid == Some(tmux.server().pid as i32))
    );
    tmux.kill(rustix::process::Signal::KILL);
    assert!(matches!(asked.run(["list-panes"]).await, Err(Unanswered::NoServer { .. })));
    assert!(matches!(probe(tmux.socket()), Probe::Refused));
    assert!(matches!(
        listing::snapshot(&asked).await,
        Err(listing::ListError::Unanswered(Unanswered::NoServer { .. }))
    ));
    std::fs::remove_file(tmux.socket()).unwrap();
    assert!(matches!(asked.run(["list-panes"]).await, Err(Unanswered::NoServer { .. })));
    wait_for("the pane to follow its server, and nothing to be started", || {
        home.processes().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_endless_answer_and_an_endless_process_are_cut_off_and_reaped() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let endless = home.script("endless", "#!/bin/sh\nexec yes\n");
    let asked = OneShot::with_binary(&endless, tmux.socket()).limit(1000);
    assert!(matches!(asked.run(["x"]).await, Err(Unanswered::TooLong { limit: 1000, .. })));
    let silent = home.script("silent", "#!/bin/sh\nexec sleep 1000\n");
    let asked = OneShot::with_binary(&silent, tmux.socket()).deadline(Duration::from_millis(50));
    assert!(matches!(asked.run(["x"]).await, Err(Unanswered::Timeout { .. })));
    let asked = OneShot::with_binary("/no/such/tmux", tmux.socket());
    assert!(matches!(asked.run(["x"]).await, Err(Unanswered::NoBinary)));
    wait_for("all to be reaped", || proc::zombies(std::process::id()).is_empty().then_some(())).await;
    let started = |process: &proc::Process| {
        let command = proc::command(process.pid);
        command.contains("yes") || command.contains("sleep 1000")
    };
    assert!(!home.processes().iter().any(started), "all are killed");
}

#[tokio::test]
async fn messages_buffers_and_titles_full_of_line_feeds_do_not_corrupt_the_stream() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, _events) = attach(&tmux).await;
    for text in ["one\ntwo", "%end 1 2 1\n%exit\n", "\x1b]2;x\x07\n%output %0 x"] {
        tmux.run(["set-buffer", "-b", text, "content\n%exit"]);
        tmux.run(["display-message", "-c", &client.identity().client.to_string(), text]);
        tmux.run(["display-message", text]);
        tmux.run(["select-pane", "-t", "%0", "-T", text]);
        assert_eq!(listed(&client).await.sessions.len(), 2);
    }
    let odd = home.root().join("a\nb\tc");
    std::fs::create_dir(&odd).unwrap();
    tmux.window("main", "odd", &odd, &["sleep", "1000"]);
    assert_eq!(listed(&client).await.panes.len(), 3);
    assert!(client.ended().is_none());
}
