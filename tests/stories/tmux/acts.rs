//! Guarded acts: done only when the test holds, proven by their token, through a client and through a plain process.

use std::ffi::OsStr;
use std::path::Path;

use ait::process::{facts, identify};
use ait::tmux::guarded::{self, Dispatch, Epoch, Guard, Outcome, PaneOption, Token};
use ait::tmux::{Client, Events, settings};
use ait::world::rows::RemainOnExit;
use rustix::process::Signal;
use tmux_control::{PaneId, SessionId, WindowId};

use super::{ClientEvent, attach, listed, server, until};
use crate::support::tmux::{Pane, Start};
use crate::support::{AIT, DEADLINE, Home, Tmux, proc, wait_for, wait_until};

const ID: &str = "0a1b2c3d";

fn token() -> Token {
    Token::random().unwrap()
}

fn pane_id(pane: &Pane) -> PaneId {
    pane.id.parse().unwrap()
}

async fn done(client: &Client, events: &mut Events, dispatch: &Dispatch) -> Outcome {
    client.dispatch(99, dispatch).unwrap();
    let reply = until(events, |event| match event {
        ClientEvent::Reply { tag: 99, reply } => Some(reply.clone()),
        _ => None,
    })
    .await;
    dispatch.outcome(reply)
}

async fn is_there(client: &Client, pane: &Pane) -> bool {
    listed(client).await.panes.iter().any(|row| row.id.to_string() == pane.id)
}

#[tokio::test]
async fn only_a_dead_pane_with_this_stamp_in_this_life_is_closed() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    tmux.ok(["set-option", "-g", "remain-on-exit", "on"]);
    let pane = tmux.window("main", "agent", &home.home(), &["sleep", "1000"]);
    let (client, mut events) = attach(&tmux).await;
    let epoch = Epoch::from(client.identity());
    let guard = || Guard::new(pane_id(&pane), epoch);
    let kill = |id: &str, guard| guarded::kill_dead_pane(guard, id.parse().unwrap(), token());

    let stamp = guarded::set(guard(), PaneOption::Record, ID, token()).unwrap();
    assert_eq!(done(&client, &mut events, &stamp).await, Outcome::Done);
    assert_eq!(tmux.format(&pane.id, "#{@aitask_record}"), ID);
    assert_eq!(done(&client, &mut events, &kill(ID, guard())).await, Outcome::NotMet, "it lives");
    assert!(pane.process().signal(Signal::KILL));
    wait_for("its death", || {
        tmux.collect();
        (tmux.format(&pane.id, "#{pane_dead}") == "1").then_some(())
    })
    .await;
    assert_eq!(
        done(&client, &mut events, &kill("0a1b2c3e", guard())).await,
        Outcome::NotMet,
        "another stamp"
    );
    for other in [Epoch { pid: epoch.pid + 1, ..epoch }, Epoch { started_at: epoch.started_at - 1, ..epoch }]
    {
        let guard = Guard::new(pane_id(&pane), other);
        assert_eq!(done(&client, &mut events, &kill(ID, guard)).await, Outcome::NotMet, "another life");
    }
    assert!(is_there(&client, &pane).await);
    assert_eq!(done(&client, &mut events, &kill(ID, guard())).await, Outcome::Done);
    assert!(!is_there(&client, &pane).await);
    assert_eq!(done(&client, &mut events, &kill(ID, guard())).await, Outcome::NotMet, "gone");
    // the answers that follow still belong to their requests
    assert_eq!(listed(&client).await.sessions.len(), 2);
}

#[tokio::test]
async fn the_same_through_a_plain_process() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "agent", &home.home(), &["sleep", "1000"]);
    let asked = server(&tmux);
    let started_at = tmux.ok(["display-message", "-p", "#{start_time}"]).parse().unwrap();
    let guard = || Guard::new(pane_id(&pane), Epoch { pid: tmux.server().pid as i32, started_at });
    let stamp = guarded::set(guard(), PaneOption::Frozen, ID, token()).unwrap();
    assert_eq!(stamp.run(&asked).await.unwrap(), Outcome::Done);
    assert_eq!(
        tmux.format(&pane.id, "#{@aitask_frozen} #{@aitask_respawn_token}"),
        format!("{ID} {}", stamp.token().as_str())
    );
    assert_eq!(tmux.format("%0", "#{@aitask_frozen}"), "", "no other pane has it");
    let kill = guarded::kill_dead_pane(guard(), ID.parse().unwrap(), token());
    assert_eq!(kill.run(&asked).await.unwrap(), Outcome::NotMet);
    let unstamp = guarded::unset(guard(), PaneOption::Frozen, token());
    assert_eq!(unstamp.run(&asked).await.unwrap(), Outcome::Done);
    assert_eq!(tmux.format(&pane.id, "[#{@aitask_frozen}]"), "[]");
    tmux.ok(["kill-pane", "-t", &pane.id]);
    assert_eq!(unstamp.run(&asked).await.unwrap(), Outcome::NotMet);
}

#[tokio::test]
async fn the_stand_in_takes_the_pane_word_by_word_and_leaves_its_token() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "agent", &home.home(), &["sleep", "1000"]);
    let (client, mut events) = attach(&tmux).await;
    let guard = || Guard::new(pane_id(&pane), Epoch::from(client.identity()));

    let folder = home.root().join("it's a #{pid} \"$HOME\" ;");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("sh");
    std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
    let words =
        [program.as_os_str(), OsStr::new("-c"), OsStr::new("sleep 1000; : '#{pid}' ;"), OsStr::new("a b;")];
    let act = guarded::respawn(guard().process(pane.pid as i32), &words, Some(&folder), token()).unwrap();
    assert_eq!(done(&client, &mut events, &act).await, Outcome::Done);
    let pid: i32 = tmux.format(&pane.id, "#{pane_pid}").parse().unwrap();
    assert_ne!(pid, pane.pid as i32);
    let seen = wait_for("the program", || facts(pid).filter(|facts| facts.argv.len() == 4)).await;
    for (word, given) in seen.argv.iter().zip(words) {
        assert_eq!(word.as_slice(), given.as_encoded_bytes());
    }
    assert_eq!(seen.cwd, Some(folder.clone()));
    let answer = client.ask(&guarded::read_token(pane_id(&pane))).await.unwrap().unwrap();
    assert!(guarded::is_token(&answer, act.token()));
    client.ask(&guarded::forget_token(pane_id(&pane))).await.unwrap().unwrap();
    let answer = client.ask(&guarded::read_token(pane_id(&pane))).await.unwrap().unwrap();
    assert!(!guarded::is_token(&answer, act.token()));
    assert_eq!(done(&client, &mut events, &act).await, Outcome::NotMet, "another process is in the pane");

    let stand_in =
        |over| guarded::respawn_standin(guard(), ID.parse().unwrap(), over, Path::new(AIT), token());
    assert_eq!(done(&client, &mut events, &stand_in(Some(pid))).await, Outcome::NotMet, "not stamped");
    tmux.ok(["set-option", "-p", "-t", &pane.id, "@aitask_frozen", ID]);
    tmux.ok(["set-option", "-p", "-t", &pane.id, "remain-on-exit", "on"]);
    assert_eq!(done(&client, &mut events, &stand_in(Some(pid))).await, Outcome::Done);
    let command = tmux.format(&pane.id, "#{pane_start_command}").replace('"', "");
    assert_eq!(command, format!("{AIT} frozenagent --record {ID}"));
    // it stands in for itself, alive or dead
    assert_eq!(done(&client, &mut events, &stand_in(None)).await, Outcome::Done);
}

#[tokio::test]
async fn a_stamp_alone_gives_nobody_up() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "agent", &home.home(), &["sleep", "1000"]);
    tmux.ok(["set-option", "-p", "-t", &pane.id, "@aitask_frozen", ID]);
    tmux.ok(["set-option", "-p", "-t", &pane.id, "remain-on-exit", "on"]);
    let (client, mut events) = attach(&tmux).await;
    let id = || ID.parse().unwrap();
    let guard = || Guard::new(pane_id(&pane), Epoch::from(client.identity()));
    let words = [OsStr::new("/bin/sleep"), OsStr::new("1000")];
    let acts = || {
        [
            guarded::respawn_standin(guard(), id(), None, Path::new(AIT), token()),
            guarded::respawn_standin(guard(), id(), Some(pane.pid as i32 + 1), Path::new(AIT), token()),
            guarded::respawn_agent(guard(), id(), "0a1b2c3d:00000001", &words, None, token()).unwrap(),
            guarded::kill_standin(guard(), id(), token()),
        ]
    };
    for act in acts() {
        assert_eq!(done(&client, &mut events, &act).await, Outcome::NotMet, "{act:?}");
    }
    assert!(pane.process().alive(), "the stranger is untouched");
    // another record's stand-in is a stranger, too
    let other = format!("exec sleep 1000; : {AIT} frozenagent --record 00000000");
    tmux.ok(["respawn-pane", "-k", "-t", &pane.id, "sh", "-c", &other]);
    for act in acts() {
        assert_eq!(done(&client, &mut events, &act).await, Outcome::NotMet, "{act:?}");
    }
    // what is dead keeps nobody
    let pid = tmux.format(&pane.id, "#{pane_pid}").parse().unwrap();
    proc::Process::of(pid).unwrap().signal(Signal::KILL);
    wait_until("tmux to know of its end", DEADLINE, || {
        tmux.collect();
        (tmux.format(&pane.id, "#{pane_dead}") == "1").then_some(())
    });
    let act = guarded::kill_standin(guard(), id(), token());
    assert_eq!(done(&client, &mut events, &act).await, Outcome::Done);
}

#[tokio::test]
async fn a_value_of_the_panes_own_comes_and_goes_alone() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let pane = tmux.window("main", "agent", &home.home(), &["sleep", "1000"]);
    let beside = tmux.split(&pane, &home.home(), &["sleep", "1000"]);
    let (client, mut events) = attach(&tmux).await;
    let guard = || Guard::new(pane_id(&pane), Epoch::from(client.identity()));
    let ask = async |pane: &Pane| {
        let mut answers = Vec::new();
        for question in settings::questions(pane_id(pane)) {
            answers.push(client.ask(&question).await.unwrap());
        }
        settings::read(&answers.try_into().unwrap()).unwrap()
    };
    let bare = ask(&pane).await;
    assert_eq!((bare.hooked, bare.own, bare.inherited), (false, None, RemainOnExit::Off));
    assert!(bare.may_be_kept());
    assert_eq!(done(&client, &mut events, &guarded::keep_dead(guard(), token())).await, Outcome::Done);
    let kept = ask(&pane).await;
    assert_eq!((kept.own, kept.inherited), (Some(RemainOnExit::On), RemainOnExit::Off));
    assert_eq!(ask(&beside).await, bare, "the pane beside it has nothing");
    assert_eq!(
        done(&client, &mut events, &guarded::keep_dead_no_more(guard(), token())).await,
        Outcome::Done
    );
    assert_eq!(ask(&pane).await, bare);

    tmux.ok(["set-option", "-w", "-t", &pane.window, "remain-on-exit", "on"]);
    let inherited = ask(&pane).await;
    assert_eq!((inherited.own, inherited.inherited), (None, RemainOnExit::On));
    for (set, unset) in [
        (vec!["set-hook", "-g", "pane-died[42]"], vec!["set-hook", "-gu", "pane-died[42]"]),
        (
            vec!["set-hook", "-w", "-t", &pane.window, "pane-exited"],
            vec!["set-hook", "-wu", "-t", &pane.window, "pane-exited"],
        ),
        (
            vec!["set-hook", "-p", "-t", &pane.id, "pane-died"],
            vec!["set-hook", "-pu", "-t", &pane.id, "pane-died"],
        ),
    ] {
        assert!(ask(&pane).await.may_be_kept(), "before {set:?}");
        tmux.ok(set.iter().copied().chain(["run-shell true"]));
        assert!(!ask(&pane).await.may_be_kept(), "{set:?}");
        tmux.ok(unset);
    }
}

#[tokio::test]
async fn what_came_into_our_session_goes_out_again_and_the_hold_stays() {
    let home = Home::new();
    let tmux = Tmux::start(&home);
    let (client, _events) = attach(&tmux).await;
    let own = client.identity().session;
    let main: SessionId = tmux.format("=main:", "#{session_id}").parse().unwrap();

    // without a target tmux chooses the session attached last, which is ours
    let strays = [
        tmux.ok(["new-window", "-P", "-F", "#{window_id} #{session_id}"]),
        tmux.ok(["new-window", "-d", "-P", "-F", "#{window_id} #{session_id}"]),
    ];
    for (stray, selected) in strays.iter().zip([true, false]) {
        let (window, session) = stray.split_once(' ').unwrap();
        assert_eq!(session, own.to_string());
        let window: WindowId = window.parse().unwrap();
        client.ask(&guarded::move_window_out(own, window, main, selected)).await.unwrap().unwrap();
        assert_eq!(tmux.format(&window.to_string(), "#{session_name}"), "main");
        assert_eq!(
            tmux.format(&window.to_string(), "#{window_active}"),
            "1".repeat(usize::from(selected)) + &"0".repeat(usize::from(!selected))
        );
        let again = client.ask(&guarded::move_window_out(own, window, main, selected)).await.unwrap();
        assert!(again.is_err(), "it is not ours any more");
    }
    let split =
        tmux.ok(["split-window", "-P", "-F", "#{pane_id}", "-t", &client.identity().hold.to_string()]);
    client.ask(&guarded::move_pane_out(split.parse().unwrap(), main, false)).await.unwrap().unwrap();
    assert_eq!(tmux.format(&split, "#{session_name}"), "main");
    let rows = listed(&client).await;
    let ours: Vec<_> = rows.panes.iter().filter(|row| row.session == own).map(|row| row.id).collect();
    assert_eq!(ours, [client.identity().hold]);
}

#[tokio::test]
async fn a_client_of_the_users_that_came_to_us_is_sent_home() {
    let home = Home::new();
    let tmux = Tmux::start_with(&home, Start::default());
    let (client, _events) = attach(&tmux).await;
    let (theirs, mut their_events) = {
        // a second control client stands for the user's terminal
        let (theirs, events) = attach(&tmux).await;
        (theirs, events)
    };
    let main: SessionId = tmux.format("=main:", "#{session_id}").parse().unwrap();
    let name = theirs.identity().client.clone();
    client.ask(&guarded::switch_client_out(&name, main)).await.unwrap().unwrap();
    // ours would leave at once; theirs was told where it is
    let ended = super::end(&mut their_events).await;
    assert_eq!(ended.cause, ait::tmux::EndCause::Moved);
    assert!(identify(client.identity().pid).is_some());
}
