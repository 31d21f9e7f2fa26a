//! The modules `tmux` and `process` on a real tmux: attaching, asking, acting, and what the user must never notice.

mod acts;
mod ask;
mod attach;
mod deaths;
mod untouched;

use std::path::{Path, PathBuf};

use ait::tmux::{Client, ClientEvent, Ended, Events, Heard, OneShot};
use ait::world::rows::Snapshot;

use crate::support::tmux::binary;
use crate::support::{AIT, DEADLINE, Tmux};

/// The tmux under test asking this server.
fn server(tmux: &Tmux) -> OneShot {
    OneShot::with_binary(resolved(), tmux.socket())
}

/// The tmux under test as a path.
fn resolved() -> PathBuf {
    let name = PathBuf::from(binary());
    if name.components().count() > 1 {
        return name;
    }
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|program| program.is_file()).unwrap()
}

/// A client on this server, whose first event has been taken.
async fn attach(tmux: &Tmux) -> (Client, Events) {
    let (client, mut events) = Client::attach_with(&server(tmux), Path::new(AIT)).await.unwrap();
    match next(&mut events).await {
        ClientEvent::Attached(identity) => assert_eq!(&identity, client.identity()),
        other => panic!("not the first event: {other:?}"),
    }
    (client, events)
}

/// The next event, with a deadline.
#[track_caller]
fn next(events: &mut Events) -> impl Future<Output = ClientEvent> {
    let at = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(DEADLINE, events.next()).await {
            Ok(Some(Heard { event, .. })) => event,
            Ok(None) => panic!("no event after the end, asked for at {at}"),
            Err(_) => panic!("no event within {DEADLINE:?}, asked for at {at}"),
        }
    }
}

/// Takes events until one is as wanted.
async fn until<T>(events: &mut Events, mut wanted: impl FnMut(&ClientEvent) -> Option<T>) -> T {
    loop {
        let event = next(events).await;
        if let Some(found) = wanted(&event) {
            return found;
        }
        assert!(!matches!(event, ClientEvent::Ended(_)), "ended instead: {event:?}");
    }
}

/// The end of the client, past all other events.
async fn end(events: &mut Events) -> Ended {
    until(events, |event| if let ClientEvent::Ended(ended) = event { Some(ended.clone()) } else { None })
        .await
}

/// The server listed through the client.
async fn listed(client: &Client) -> Snapshot {
    use ait::tmux::listing::{panes, sessions, windows};

    let ask = async |command| client.ask(&command).await.unwrap().unwrap();
    let (sessions, windows, panes) = (ask(sessions()).await, ask(windows()).await, ask(panes()).await);
    Snapshot::parse(&sessions, &windows, &panes).unwrap()
}
