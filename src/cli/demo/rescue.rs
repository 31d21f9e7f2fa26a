//! `ait demo --recover`: conversations that outlive their agents, on the same stage.
//!
//! The agents behave like Claude Code where `ait` looks (argv, hooks, conversation files, screen), and answer each prompt with
//! how many earlier ones they remember: that is how it is seen, on the screen, that a conversation went on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Wrong;
use super::play::{PATIENCE, Play, kill, said};
use super::stage::myself;
use crate::process::{self, Signal};

/// Who plays: project and window; two of them share a window.
const CAST: [(&str, &str); 4] = [("shop", "cart"), ("shop", "cart"), ("shop", "search"), ("blog", "drafts")];

/// How long the fleet may take to come back. Nothing is measured against it.
const COMEBACK: Duration = Duration::from_secs(30);

/// The events of Claude Code that `ait hook` hears.
const EVENTS: [&str; 6] =
    ["SessionStart", "UserPromptSubmit", "PermissionRequest", "Notification", "Stop", "SessionEnd"];

/// One agent and its conversation.
#[derive(Debug, Clone)]
struct Talker {
    project: &'static str,
    window: &'static str,
    conversation: String,
    pane: String,
    record: String,
    turns: usize,
}

/// The acts, from the first prompt to the fleet's return. Gives how many there were.
pub(super) async fn play(mut play: Play<'_>) -> Result<usize, Wrong> {
    let mut fleet = begin(&mut play).await?;
    freeze_and_restore(&mut play, &mut fleet).await?;
    crash(&mut play, &mut fleet).await?;
    Ok(play.acts())
}

/// Four agents start, are adopted, and are each told something.
async fn begin(play: &mut Play<'_>) -> Result<Vec<Talker>, Wrong> {
    play.act("four agents start in two projects, and each is told something")?;
    install_hooks(play)?;
    let program = play.stage.agent("claude")?.to_string_lossy().into_owned();
    let mut fleet: Vec<Talker> = Vec::new();
    for (project, window) in CAST {
        let root = play.stage.project(project)?.to_string_lossy().into_owned();
        let conversation = uuid::Uuid::new_v4().to_string();
        let session = format!("={project}:");
        let neighbour = fleet.iter().find(|one| one.project == project && one.window == window);
        let mut words = match neighbour {
            Some(neighbour) => vec!["split-window", "-d", "-t", &neighbour.pane],
            None if fleet.iter().any(|one| one.project == project) => {
                vec!["new-window", "-d", "-t", &session, "-n", window]
            }
            None => vec!["new-session", "-d", "-x", "120", "-y", "40", "-s", project, "-n", window],
        };
        words.extend(["-P", "-F", "#{pane_id}", "-c", &root, &program, "--session-id", &conversation]);
        let pane = play.stage.tmux(&words).await?;
        fleet.push(Talker { project, window, conversation, pane, record: String::new(), turns: 0 });
    }
    for talker in &fleet {
        screen(play, &talker.pane, "its prompt line", "? for shortcuts").await?;
    }
    play.stage.ait(&["adopt", "--all"]).await?;
    for talker in &mut fleet {
        talker.record =
            play.stage.tmux(&["show-options", "-p", "-v", "-t", &talker.pane, "@aitask_record"]).await?;
    }
    play.did("`claude` in 3 windows and a split; ait adopt --all")?;
    let begun = Instant::now();
    for talker in &mut fleet {
        prompt(play, talker, &format!("my window is {}", talker.window)).await?;
    }
    let told = fleet[0].clone();
    said(play.show.saw("each has answered its first prompt", begun.elapsed()))?;
    said(play.show.from(&format!("the screen of `{}`: turn 1, 0 earlier", told.window)))?;
    Ok(fleet)
}

/// One is frozen and restored: its process ends, its conversation does not.
async fn freeze_and_restore(play: &mut Play<'_>, fleet: &mut [Talker]) -> Result<(), Wrong> {
    play.act("an agent is frozen, then restored")?;
    let talker = &mut fleet[2];
    let begun = Instant::now();
    play.stage.ait_slowly(&["freeze", &talker.pane]).await?;
    play.did(&format!("ait freeze {} (`{}`)", talker.pane, talker.window))?;
    let record = talker.record.clone();
    play.see("the frozen record", begun, |book| {
        book.record(&record)?
            .frozen()
            .then(|| format!("record {record} is frozen; its screen stands in its pane"))
    })
    .await?;
    let begun = Instant::now();
    play.stage.ait_slowly(&["restore", &talker.record]).await?;
    play.did(&format!("ait restore {record}"))?;
    play.see("the restored record", begun, |book| {
        book.record(&record)?.live().then(|| format!("record {record} is live again"))
    })
    .await?;
    again(play, talker).await?;
    said(play.show.from(&format!("the screen of `{}`: turn 2, 1 earlier", talker.window)))
}

/// The server is killed; the fleet comes back by itself.
async fn crash(play: &mut Play<'_>, fleet: &mut [Talker]) -> Result<(), Wrong> {
    play.act("the tmux server is killed, and nobody does anything")?;
    let server = play.server().await?;
    play.settled().await;
    let begun = Instant::now();
    kill(&server, Signal::KILL)?;
    play.did("SIGKILL to the tmux server")?;
    let records: Vec<String> = fleet.iter().map(|talker| talker.record.clone()).collect();
    play.see_within("the fleet's return", begun, COMEBACK, |book| {
        let back = |id: &String| book.record(id).is_some_and(|entry| entry.live_away_from(server.pid));
        let back = records.iter().all(back);
        (back && book.records.len() == records.len())
            .then(|| "all four are live again on a new server; none is doubled".to_owned())
    })
    .await?;
    for talker in fleet {
        again(play, talker).await?;
    }
    said(play.show.from("their screens: each in its session and window, with every earlier turn"))
}

/// Finds where the agent's record is now, proves the place and the conversation, and prompts it once more.
async fn again(play: &mut Play<'_>, talker: &mut Talker) -> Result<(), Wrong> {
    let book = play.book()?;
    let entry = book.record(&talker.record).filter(|entry| entry.live()).ok_or_else(|| Wrong::Seen {
        what: format!("the agent of `{}`", talker.window),
        expected: "a live record".to_owned(),
        seen: book.summary(),
    })?;
    talker.pane = entry.pane_id.clone();
    let place = "#{session_name} #{window_name} #{pane_pid}";
    let told = play.stage.tmux(&["display-message", "-p", "-t", &talker.pane, place]).await?;
    let expected = format!("{} {} ", talker.project, talker.window);
    let pid = told.strip_prefix(&expected).and_then(|pid| pid.parse().ok());
    let words: Vec<String> = pid.and_then(process::facts).map(|facts| lossy(&facts.argv)).unwrap_or_default();
    if !words.windows(2).any(|pair| pair[0] == "--resume" && pair[1] == talker.conversation) {
        return Err(Wrong::Seen {
            what: format!("pane {}", talker.pane),
            expected: format!("{expected}with `claude --resume {}`", talker.conversation),
            seen: format!("{told}: {}", words.join(" ")),
        });
    }
    screen(play, &talker.pane, "its prompt line", "? for shortcuts").await?;
    prompt(play, talker, "do you remember?").await
}

fn lossy(argv: &[Vec<u8>]) -> Vec<String> {
    argv.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Types a prompt and waits until the agent has answered it, with as many earlier turns as it had.
async fn prompt(play: &mut Play<'_>, talker: &mut Talker, text: &str) -> Result<(), Wrong> {
    play.stage.tmux(&["send-keys", "-t", &talker.pane, "-l", text]).await?;
    play.stage.tmux(&["send-keys", "-t", &talker.pane, "Enter"]).await?;
    let answer = format!("turn {}, {} earlier: {text}", talker.turns + 1, talker.turns);
    screen(play, &talker.pane, &format!("the answer `{answer}`"), &answer).await?;
    talker.turns += 1;
    screen(play, &talker.pane, "its prompt line", "? for shortcuts").await
}

/// Waits until a pane shows `text`.
async fn screen(play: &Play<'_>, pane: &str, what: &str, text: &str) -> Result<(), Wrong> {
    let begun = Instant::now();
    loop {
        let shown = play.stage.tmux(&["capture-pane", "-p", "-J", "-t", pane]).await?;
        if shown.contains(text) {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            let last: Vec<&str> = shown.lines().filter(|line| !line.trim().is_empty()).collect();
            let last = last.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join(" / ");
            return Err(Wrong::NotSeen {
                what: format!("{what} in pane {pane}"),
                span: PATIENCE,
                instead: format!("it shows: {last}"),
            });
        }
        // tmux tells of no redrawing to a client that is not attached
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The agents' settings, as `ait setup` leaves them.
fn install_hooks(play: &Play<'_>) -> Result<(), Wrong> {
    let program = myself();
    let program = shlex::try_quote(&program).map_or_else(|_| program.clone(), |quoted| quoted.into_owned());
    let groups: serde_json::Map<String, Value> = EVENTS
        .iter()
        .map(|event| {
            let command = format!("{program} hook {event} --provider claude");
            ((*event).to_owned(), json!([{ "hooks": [{ "type": "command", "command": command }] }]))
        })
        .collect();
    play.stage.write(".claude/settings.json", &json!({ "hooks": groups }).to_string())
}
