//! How a control client comes, lives and goes.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ait::process::{Delivery, Opened, Watch, signal};
use ait::tmux::{
    AttachError, Client, ClientEvent, EndCause, HOLD_SESSION, ReplyError, SendError, Unanswered,
};
use ait::world::mark::Mark;
use rustix::process::Signal;

use super::{attach, end, listed, server, until};
use crate::support::proc::Process;
use crate::support::tmux::Start;
use crate::support::{AIT, DEADLINE, Home, Tmux, proc, wait_for};

fn sessions(tmux: &Tmux) -> String {
    tmux.ok(["list-sessions", "-F", "#{session_name}"])
}

#[tokio::test]
async fn it_says_who_the_server_is_and_lives_in_a_session_of_its_own() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, _events) = attach(&tmux).await;
    let identity = client.identity();
    assert_eq!(identity.pid as u32, tmux.server().pid);
    let process = identity.server.as_ref().unwrap();
    assert_eq!(
        (process.pid as u32, &process.started),
        (tmux.server().pid, &tmux.server().started.to_string())
    );
    assert_eq!(identity.started_at.to_string(), tmux.ok(["display-message", "-p", "#{start_time}"]));
    assert_eq!(identity.socket, tmux.socket());
    assert_eq!(identity.default_session.unwrap().to_string(), tmux.format("=main:", "#{session_id}"));
    assert_eq!(identity.session.to_string(), tmux.format("=_ait:", "#{session_id}"));
    assert_eq!(identity.hold.to_string(), tmux.format("=_ait:", "#{pane_id}"));
    let command = tmux.format("=_ait:", "#{pane_start_command}").replace('"', "");
    assert!(command.starts_with(&format!("{AIT} hold --owner {}:", std::process::id())), "{command}");
    let version = tmux.ok(["display-message", "-p", "#{version}"]);
    assert_eq!(identity.version_text, version.as_str());
    assert!(identity.version.is_some(), "{version}");
    assert_eq!(sessions(&tmux), "_ait\nmain");
    assert_eq!(
        tmux.ok(["list-clients", "-F", "#{client_name} #{session_name}"]),
        format!("{} _ait", identity.client)
    );
}

#[tokio::test]
async fn dropping_it_leaves_nothing_and_collects_its_process() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, mut events) = attach(&tmux).await;
    let pid: u32 = client.identity().client.to_string().strip_prefix("client-").unwrap().parse().unwrap();
    drop(client);
    let ended = end(&mut events).await;
    assert_eq!(ended.cause, EndCause::Closed);
    assert!(events.next().await.is_none(), "nothing after the end");
    assert_eq!(proc::state(pid), None, "the client's process is reaped");
    wait_for("the session to go", || (sessions(&tmux) == "main").then_some(())).await;
    assert_eq!(tmux.ok(["list-clients"]), "");
}

#[tokio::test]
async fn a_second_client_shares_the_session_and_comes_again_when_the_first_leaves() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (first, mut first_events) = attach(&tmux).await;
    let (second, mut second_events) = attach(&tmux).await;
    assert_eq!(first.identity().session, second.identity().session);
    assert_eq!(first.identity().hold, second.identity().hold);
    drop(first);
    assert_eq!(end(&mut first_events).await.cause, EndCause::Closed);
    assert_eq!(end(&mut second_events).await.cause, EndCause::Stream);
    let (again, mut events) = attach(&tmux).await;
    assert_ne!(again.identity().hold, second.identity().hold);
    drop(again);
    let _ = end(&mut events).await;
    wait_for("the session to go", || (sessions(&tmux) == "main").then_some(())).await;
}

#[tokio::test]
async fn a_session_of_that_name_that_is_not_ours_is_left_alone() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.session(HOLD_SESSION, &home.home(), &["sleep", "1000"]);
    let refused = Client::attach_with(&server(&tmux), Path::new(AIT)).await;
    assert!(matches!(refused, Err(AttachError::NotOurs { .. })), "{refused:?}");
    assert_eq!(sessions(&tmux), "_ait\nmain");
    assert_eq!(tmux.ok(["show-options", "-t", "=_ait:", "destroy-unattached"]), "");
}

#[tokio::test]
async fn a_program_path_with_spaces_quotes_and_formats_holds_the_session() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let odd = home.root().join("it's a #{pid} \"$HOME\"");
    std::fs::create_dir(&odd).unwrap();
    let program = odd.join("ait");
    std::fs::hard_link(AIT, &program).or_else(|_| std::fs::copy(AIT, &program).map(drop)).unwrap();
    let (client, _events) = Client::attach_with(&server(&tmux), &program).await.unwrap();
    let pane = client.identity().hold.to_string();
    let pid: i32 = tmux.format(&pane, "#{pane_pid}").parse().unwrap();
    let facts =
        wait_for("the program", || ait::process::facts(pid).filter(|facts| facts.argv.len() == 6)).await;
    assert_eq!(facts.argv[0], program.as_os_str().as_encoded_bytes());
    let relative = Client::attach_with(&server(&tmux), Path::new("ait")).await;
    assert!(matches!(relative, Err(AttachError::HoldProgram(_))));
}

#[tokio::test]
async fn no_server_is_said_to_be_none_and_none_is_started() {
    let home = Home::new();
    let tmux = Tmux::unstarted(&home, Start::default());
    for _ in 0..2 {
        let none = Client::attach_with(&server(&tmux), Path::new(AIT)).await;
        assert!(matches!(none, Err(AttachError::Unanswered(Unanswered::NoServer { .. }))), "{none:?}");
        assert!(home.processes().is_empty());
        // the second time round a stale socket is there
        if !tmux.socket().exists() {
            drop(std::os::unix::net::UnixListener::bind(tmux.socket()).unwrap());
            // a program that another story is just starting may hold a copy for a moment
            wait_for("nobody to listen", || {
                matches!(ait::tmux::probe(tmux.socket()), ait::tmux::Probe::Refused).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn killing_its_process_or_its_session_ends_it_and_the_next_one_finds_the_same_life() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, mut events) = attach(&tmux).await;
    let before = client.identity().clone();
    let life = |identity: &ait::tmux::Identity| (identity.server.clone(), identity.started_at);

    let pid: i32 = before.client.to_string().strip_prefix("client-").unwrap().parse().unwrap();
    let process = ait::process::identify(pid).unwrap();
    assert_eq!(signal(&process, Signal::KILL).unwrap(), Delivery::Delivered);
    let ended = end(&mut events).await;
    assert_eq!((ended.cause, ended.exit), (EndCause::Stream, None));
    assert_eq!(proc::state(pid as u32), None, "reaped");
    assert_eq!(client.ask(&ait::tmux::listing::panes()).await, Err(SendError::Ended));

    // the session waits for the next one, as long as its owner lives
    let (client, mut events) = attach(&tmux).await;
    assert_eq!(life(client.identity()), life(&before));
    assert_eq!(client.identity().session, before.session);
    tmux.ok(["kill-session", "-t", "=_ait"]);
    let ended = end(&mut events).await;
    assert_eq!((ended.cause, ended.exit), (EndCause::Stream, Some("".into())));
    let (again, _events) = attach(&tmux).await;
    assert_eq!(life(again.identity()), life(&before));
    assert_ne!(again.identity().session, before.session);
}

#[tokio::test]
async fn switched_into_a_session_of_the_users_it_leaves() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, mut events) = attach(&tmux).await;
    tmux.ok(["switch-client", "-c", &client.identity().client.to_string(), "-t", "=main"]);
    assert_eq!(end(&mut events).await.cause, EndCause::Moved);
    wait_for("it to be gone", || (tmux.format("=main:", "#{session_attached}") == "0").then_some(())).await;
}

#[tokio::test]
async fn detach_on_destroy_off_does_not_put_it_into_a_session_of_the_users_for_long() {
    let home = Home::new();
    let start = Start { configuration: "set -g detach-on-destroy off\n".to_owned(), ..Start::default() };
    let tmux = Tmux::start_with(&home, start);
    let (_client, mut events) = attach(&tmux).await;
    tmux.ok(["kill-session", "-t", "=_ait"]);
    let ended = end(&mut events).await;
    assert!(matches!(ended.cause, EndCause::Moved | EndCause::Stream), "{ended:?}");
    wait_for("it to be gone", || (tmux.format("=main:", "#{session_attached}") == "0").then_some(())).await;
}

#[tokio::test]
async fn each_way_a_server_ends_is_told_once_by_its_process_and_once_by_the_client() {
    for (what, signal) in [("TERM", Some(Signal::TERM)), ("KILL", Some(Signal::KILL)), ("kill-server", None)]
    {
        let home = Home::new();
        let tmux = Tmux::start(&home);
        let (client, mut events) = attach(&tmux).await;
        let id = client.identity().server.clone().unwrap();
        let Opened::Watching(watch) = Watch::open(&id).unwrap() else { panic!("it runs") };
        match signal {
            Some(signal) => assert!(tmux.server().signal(signal)),
            None => drop(tmux.ok(["kill-server"])),
        }
        let question = ait::tmux::listing::panes();
        let unanswered = client.ask(&question);
        tokio::time::timeout(DEADLINE, watch.died()).await.unwrap().unwrap();
        let ended = end(&mut events).await;
        assert_eq!(ended.cause, EndCause::Stream, "{what}");
        if signal == Some(Signal::KILL) {
            assert!(matches!(unanswered.await, Ok(Err(ReplyError::Unanswered)) | Err(SendError::Ended)));
            assert_eq!(ended.exit, Some("server exited unexpectedly".into()));
        }
        assert!(events.next().await.is_none(), "{what}: told once");
    }
}

#[tokio::test]
async fn a_new_server_on_the_same_socket_is_another_life() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, mut events) = attach(&tmux).await;
    let first = client.identity().clone();
    tmux.kill(Signal::KILL);
    let _ = end(&mut events).await;
    tmux.boot();
    let (client, _events) = attach(&tmux).await;
    assert_ne!(client.identity().server, first.server);
    assert_eq!(listed(&client).await.sessions.iter().filter(|row| row.name == "main").count(), 1);
}

#[tokio::test]
async fn a_deleted_and_recreated_socket_changes_nothing() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, _events) = attach(&tmux).await;
    std::fs::remove_file(tmux.socket()).unwrap();
    assert_eq!(listed(&client).await.sessions.len(), 2, "the connection lives on");
    let absent = server(&tmux).run(["list-sessions"]).await;
    assert!(matches!(absent, Err(Unanswered::NoServer { .. })), "{absent:?}");
    assert!(tmux.server().signal(Signal::USR1));
    wait_for("the socket", || tmux.socket().exists().then_some(())).await;
    let (again, _events) = attach(&tmux).await;
    assert_eq!(again.identity().server, client.identity().server);
}

#[tokio::test]
async fn the_server_ends_with_the_last_session_of_the_user_once_we_leave() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, mut events) = attach(&tmux).await;
    let id = client.identity().server.clone().unwrap();
    let Opened::Watching(watch) = Watch::open(&id).unwrap() else { panic!("it runs") };
    tmux.ok(["kill-session", "-t", "=main"]);
    until(&mut events, |event| matches!(event, ClientEvent::Mark(Mark::Sessions)).then_some(())).await;
    let left = listed(&client).await;
    assert_eq!(left.sessions.iter().map(|row| row.id).collect::<Vec<_>>(), [client.identity().session]);
    drop(client);
    tokio::time::timeout(DEADLINE, watch.died()).await.unwrap().unwrap();
    let _ = end(&mut events).await;
}

#[tokio::test]
async fn a_stopped_server_is_unknown_and_heals() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, mut events) = attach(&tmux).await;
    assert!(tmux.server().signal(Signal::STOP));

    let short = server(&tmux).deadline(Duration::from_millis(300));
    let silent = short.run(["list-sessions"]).await;
    assert!(matches!(silent, Err(Unanswered::Timeout { .. })), "{silent:?}");
    let asking = |process: &Process| proc::command(process.pid).contains("list-sessions");
    assert!(!home.processes().iter().any(asking), "the asking process is killed");

    // requests pile up to a bound, and none is lost
    let mut sent = 0;
    let full = loop {
        match client.send(sent, &ait::tmux::listing::panes()) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, SendError::Full);
    assert!(sent > 100, "{sent}");
    assert!(tmux.server().signal(Signal::CONT));
    for expected in 0..sent {
        let (tag, ok) = until(&mut events, |event| match event {
            ClientEvent::Reply { tag, reply } => Some((*tag, reply.is_ok())),
            _ => None,
        })
        .await;
        assert_eq!((tag, ok), (expected, true), "in order, each once");
    }
    assert!(server(&tmux).run(["list-sessions"]).await.is_ok());
}

#[tokio::test]
async fn leaving_a_stopped_server_does_not_wait_for_it() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, mut events) = attach(&tmux).await;
    let pid: u32 = client.identity().client.to_string().strip_prefix("client-").unwrap().parse().unwrap();
    assert!(tmux.server().signal(Signal::STOP));
    drop(client);
    assert_eq!(end(&mut events).await.cause, EndCause::Closed);
    assert_eq!(proc::state(pid), None, "killed and reaped");
    assert!(tmux.server().signal(Signal::CONT));
    wait_for("the session to go", || (sessions(&tmux) == "main").then_some(())).await;
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_told_and_loses_no_answer() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, mut events) = attach(&tmux).await;
    // two names in turn, so that no two marks are one
    let script: Vec<String> = (0..6000).map(|n| format!("rename-window -t @0 n{}", n % 2)).collect();
    let file = home.root().join("renames");
    std::fs::write(&file, script.join("\n")).unwrap();
    // several command lines, since one batch's notifications repeat the last name
    for _ in 0..3 {
        tmux.ok(["source-file", &file.to_string_lossy()]);
    }
    client.send(7, &ait::tmux::listing::panes()).unwrap();
    let mut overflowed = false;
    let answered = until(&mut events, |event| match event {
        ClientEvent::Overflow => {
            overflowed = true;
            None
        }
        ClientEvent::Reply { tag: 7, reply } => Some(reply.is_ok()),
        _ => None,
    })
    .await;
    assert!(answered);
    // tmux may fold repeated names; then nothing overflows, and nothing is lost either
    let _ = overflowed;
    assert_eq!(listed(&client).await.windows.len(), 2);
}

/// Stories share a process, and each may have a child that just ended: what stays is what was not reaped.
async fn no_zombies() {
    wait_for("all children to be reaped", || proc::zombies(std::process::id()).is_empty().then_some(()))
        .await;
}

/// The variable that tells [`an_owner`] which server to attach to.
const OWNED: &str = "AIT_STORY_OWNED_SOCKET";

/// Not a story by itself: the process that holds a client until it is killed. The story after this one starts it.
#[tokio::test]
async fn an_owner() {
    let Some(socket) = std::env::var_os(OWNED) else { return };
    let asked = ait::tmux::OneShot::with_binary(super::resolved(), socket);
    let (_client, mut events) = Client::attach_with(&asked, Path::new(AIT)).await.unwrap();
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn a_killed_owner_leaves_no_client_and_no_session_and_the_server_untouched() {
    let home = Home::new();
    let start = Start { configuration: "set -g remain-on-exit on\n".to_owned(), ..Start::default() };
    let tmux = Tmux::start_with(&home, start);
    let busy = Busy::start(&tmux);
    for _ in 0..10 {
        let mut owner = home
            .command(std::env::current_exe().unwrap())
            .args(["--exact", "tmux::attach::an_owner", "--nocapture"])
            .env(OWNED, tmux.socket())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("the client", || {
            let hold = tmux.run(["show-options", "-p", "-v", "-t", "=_ait:", "remain-on-exit"]);
            (hold.text() == "off").then_some(())
        })
        .await;
        let hold = Process::of(tmux.format("=_ait:", "#{pane_pid}").parse().unwrap()).unwrap();
        owner.kill().unwrap();
        owner.wait().unwrap();
        wait_for("the session to go", || (sessions(&tmux) == "main").then_some(())).await;
        wait_for("the client to go", || tmux.ok(["list-clients"]).is_empty().then_some(())).await;
        assert!(hold.dies(DEADLINE));
        wait_for("its process to go", || {
            let client = |process: &Process| proc::command(process.pid).contains("-C new-session");
            (!home.processes().iter().any(client)).then_some(())
        })
        .await;
    }
    busy.stop();
    assert!(tmux.server().alive(), "the same server all the time");
}

#[tokio::test]
async fn leaving_a_busy_server_does_not_crash_it() {
    leaving_a_busy_server(&[]).await;
}

#[tokio::test]
async fn nor_does_it_where_the_user_has_sessions_destroyed_that_nobody_is_attached_to() {
    leaving_a_busy_server(&[
        &["set-option", "-t", "=main:", "destroy-unattached", "off"],
        &["set-option", "-g", "destroy-unattached", "on"],
    ])
    .await;
}

/// Leaving while other clients come and go: what crashes tmux 3.3a when the session dies by `destroy-unattached`.
async fn leaving_a_busy_server(habits: &[&[&str]]) {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    for habit in habits {
        tmux.ok(*habit);
    }
    let busy = Busy::start(&tmux);
    for _ in 0..20 {
        let (client, mut events) = attach(&tmux).await;
        drop(client);
        let _ = end(&mut events).await;
        assert!(tmux.server().alive(), "it crashed");
    }
    busy.stop();
    wait_for("the session to go", || (sessions(&tmux) == "main").then_some(())).await;
    assert!(tmux.server().alive());
}

/// Plain clients that come and go without end.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn start(tmux: &Tmux) -> Busy {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..4)
            .map(|_| {
                let (stop, socket, home) = (Arc::clone(&stop), tmux.socket().to_owned(), tmux.home().clone());
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let mut command = home.command(super::resolved());
                        command.args(["-N", "-S"]).arg(&socket).arg("list-sessions");
                        command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
                    }
                })
            })
            .collect();
        Busy { stop, threads }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

#[tokio::test]
async fn a_hook_that_answers_first_does_not_shift_the_answers() {
    let home = Home::new();
    let start = Start {
        configuration: "set-hook -g after-list-panes 'display-message -p hooked'\n\
                        set-hook -g window-renamed 'run-shell -bC \"display-message -p stray\"'\n"
            .to_owned(),
        ..Start::default()
    };
    let tmux = Tmux::start_with(&home, start);
    let (client, _events) = attach(&tmux).await;
    for _ in 0..20 {
        tmux.ok(["rename-window", "-t", "@0", "x"]);
        let snapshot = listed(&client).await;
        assert_eq!(snapshot.sessions.len(), 2);
    }
}

#[tokio::test]
async fn a_wrapper_that_says_lost_server_or_mismatch_proves_nothing() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    for (words, mismatch) in [
        ("lost server", false),
        ("server exited unexpectedly", false),
        ("no server running on /x", false),
        ("error connecting to /x (No such file or directory)", false),
        ("protocol version mismatch (client 8, server 7)", true),
    ] {
        let wrapper = home.script("tmux-wrapper", &format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n"));
        let asked = ait::tmux::OneShot::with_binary(&wrapper, tmux.socket());
        let seen = asked.run(["list-sessions"]).await;
        match (seen, mismatch) {
            (Err(Unanswered::Unreachable { .. }), false)
            | (Err(Unanswered::ProtocolMismatch { .. }), true) => {}
            (other, _) => panic!("{words}: {other:?}"),
        }
        let seen = Client::attach_with(&asked, Path::new(AIT)).await;
        assert!(
            matches!(
                seen,
                Err(AttachError::Unanswered(
                    Unanswered::Unreachable { .. } | Unanswered::ProtocolMismatch { .. }
                ))
            ),
            "{words}: {seen:?}"
        );
    }
    // only the control client fails: an upgrade between two starts
    let real = super::resolved();
    let wrapper = home.script(
        "tmux-wrapper",
        &format!(
            "#!/bin/sh\ncase \" $* \" in *' -C '*) echo 'protocol version mismatch (client 8, server 7)' >&2; exit 1;; \
             esac\nexec '{}' \"$@\"\n",
            real.display()
        ),
    );
    let seen =
        Client::attach_with(&ait::tmux::OneShot::with_binary(&wrapper, tmux.socket()), Path::new(AIT)).await;
    assert!(matches!(seen, Err(AttachError::Unanswered(Unanswered::ProtocolMismatch { .. }))), "{seen:?}");
    no_zombies().await;
    assert_eq!(sessions(&tmux), "main");
}
