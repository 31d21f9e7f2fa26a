//! Text and keys to a running agent, and what is known of them afterwards.
//!
//! ```text
//! the session's lock → one look at its pane and its agent → text → settled → Enter → proof, else Enter once more → receipt
//! ```
//!
//! A text is pasted once, whatever comes of it: only Enter is repeated, and only where the screen shows that it was not taken. What
//! is refused was not written.

mod probe;
mod witness;

use serde::{Deserialize, Serialize};

use super::identity;
use super::paste::{self, Hand, NotPasted};
use super::perform::{self, World};
use crate::coordinator::Sight;
use crate::coordinator::sending::{self, Key, Known, Taken, Unsendable};
use crate::record::{Ours, Record, RecordId, Session, Verb};
use crate::store::sends::{Earlier, Sends};
use crate::store::{PATIENCE, StoreError};
use probe::Pane;
use witness::Witness;

/// How often the prompt line is looked at for a text that was pasted, before Enter follows anyway.
const LOOKS: usize = 5;

/// What is to be sent.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    /// The text, not empty.
    pub text: Option<&'a [u8]>,
    /// The keys after it. The first Enter after a text hands it in.
    pub keys: &'a [Key],
    /// Whatever the agent is at, and whoever else gets the keys.
    pub force: bool,
}

impl<'a> Order<'a> {
    /// The text as it is written, and whether a line end was left out: in a bracketed paste that is handed in it would be one more
    /// line.
    fn written(&self, brackets: bool) -> Option<(&'a [u8], bool)> {
        let text = self.text?;
        let hands_in = self.keys.contains(&Key::Enter);
        let rest = text.strip_suffix(b"\n").filter(|_| hands_in && brackets);
        Some(rest.map_or((text, false), |rest| (rest, true)))
    }
}

/// What is known of a send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// In one word.
    pub known: Known,
    /// Who says that it was submitted: `hook`, `transcript`, `screen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Enter was pressed once more.
    #[serde(default)]
    pub enter_repeated: bool,
    /// A line end at the end of the text was left out: in a bracketed paste it would be one more line.
    #[serde(default)]
    pub newline_omitted: bool,
    /// What came in the way once something was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
}

/// Why there is no receipt.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// Nothing was written.
    #[error("{}", .0.seen)]
    Refused(Unsendable),
    /// The store or the session's folder refused; nothing was written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Unsendable> for NotSent {
    fn from(why: Unsendable) -> Self {
        Self::Refused(why)
    }
}

fn refuse<T>(word: &'static str, seen: impl Into<String>) -> Result<T, NotSent> {
    Err(Unsendable::new(word, seen).into())
}

/// Sends to a record's agent, once every earlier send to it is over. A `key` makes it once: told again, the receipt is that of the
/// first time, and the second value is true.
///
/// # Errors
/// [`NotSent`]: nothing was written.
pub async fn send(
    world: &World,
    id: RecordId,
    order: &Order<'_>,
    key: Option<&str>,
) -> Result<(Receipt, bool), NotSent> {
    let sends = held(world, id).await?;
    let Some(key) = key else { return Ok((write(world, id, order).await?, false)) };
    let names: Vec<&[u8]> = order.keys.iter().map(|key| key.name().as_bytes()).collect();
    let sent = [&[order.text.unwrap_or_default()], names.as_slice()].concat();
    match sends.begin(key, &sent)? {
        Earlier::New => {}
        Earlier::Done(receipt) => {
            return match serde_json::from_value(receipt) {
                Ok(receipt) => Ok((receipt, true)),
                Err(_) => Ok((cut_short(), true)),
            };
        }
        Earlier::CutShort => return Ok((cut_short(), true)),
        Earlier::Other => return refuse("other_text", "something else was sent under this idempotency key"),
        Earlier::Unreadable(path) => {
            let shown = path.display();
            return refuse(
                "keys_unreadable",
                format!("{shown}, which holds the keys of earlier sends, is broken"),
            );
        }
    }
    let receipt = write(world, id, order).await;
    let kept = receipt.as_ref().ok().and_then(|receipt| serde_json::to_value(receipt).ok());
    let noted = sends.end(key, kept);
    let receipt = receipt?;
    // it was sent: a receipt that cannot be kept makes a retry unconfirmed, never a second paste
    if let Err(error) = noted {
        tracing::warn!(%error, "the receipt of a send is not kept");
    }
    Ok((receipt, false))
}

fn cut_short() -> Receipt {
    let why = "an earlier send under this key was cut short; it may have been written";
    Receipt { stopped_by: Some(why.to_owned()), ..Receipt::of(Known::Unconfirmed) }
}

/// The session's lock, waited for in a thread of its own: nobody tells when it is free.
async fn held(world: &World, id: RecordId) -> Result<Sends, NotSent> {
    let paths = world.store.paths().clone();
    let (told, hear) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = told.send(Sends::hold(&paths, id));
    });
    match hear.await {
        Ok(held) => Ok(held?),
        Err(_) => refuse("busy", "its lock cannot be waited for"),
    }
}

impl Receipt {
    fn of(known: Known) -> Self {
        Self { known, proof: None, enter_repeated: false, newline_omitted: false, stopped_by: None }
    }
}

async fn write(world: &World, id: RecordId, order: &Order<'_>) -> Result<Receipt, NotSent> {
    let receipt = put(world, id, order).await?;
    // it was sent, whatever becomes of this
    if let Err(error) = noted(world, id) {
        tracing::info!(%error, "when it was sent to is not noted");
    }
    Ok(receipt)
}

/// Notes that a session was sent to, and the conversation that its first prompt may have begun.
fn noted(world: &World, id: RecordId) -> Result<(), StoreError> {
    let facts = world.system.facts();
    let snapshot = world.store.read()?;
    let Some(record) = snapshot.records.get(id) else { return Ok(()) };
    let begun = record.codeagent_session_id.is_empty().then(|| identity::correction(record)).flatten();
    let sent = record.ait.session.clone().map(|session| {
        let session = Some(Session { sent_at: Some(facts.now), ..session });
        let ours = Box::new(Ours { session, ..Ours::default() });
        Verb::Enrich { at: record.location.clone(), ours, lost: None, replace: true }
    });
    let steps: Vec<_> = begun.into_iter().chain(sent).map(|verb| (Some(id), verb)).collect();
    // refused: it is another launch by now
    if steps.is_empty() { Ok(()) } else { world.store.apply(&steps, &facts, PATIENCE).map(drop) }
}

async fn put(world: &World, id: RecordId, order: &Order<'_>) -> Result<Receipt, NotSent> {
    // as it is now, not as it was before the sends ahead of this one
    let snapshot = world.store.read()?;
    let Some(record) = snapshot.records.get(id) else {
        return refuse("not_running", "it is not running");
    };
    let pane = Pane::of(record)?;
    let seen = pane.look(&paste::buffers_of(id)).await?;
    seen.refuses(order)?;
    let hands_in = order.text.is_some() && order.keys.contains(&Key::Enter);
    let mut receipt = Receipt::of(Known::Typed);
    let (text, newline_omitted) = order.written(seen.may_bracket()).unwrap_or_default();
    if let Some(whole) = order.text.filter(|text| !text.is_empty()) {
        if let Some(why) = sending::unsendable(whole, seen.may_bracket()) {
            return Err(why.into());
        }
        let refused = sending::takes_no_text(&perform::look(world, record).await);
        if let Some(why) = refused.filter(|_| !order.force) {
            return Err(why.into());
        }
        receipt.newline_omitted = newline_omitted;
    }
    let hand = pane.hand(&seen, &paste::buffers_of(id));
    let mut written = false;
    if !text.is_empty() {
        let whole = seen.may_bracket() && sending::needs_brackets(text) && !order.force;
        match hand.text(text, whole).await {
            Ok(()) => written = true,
            Err(NotPasted::Unknown) => {
                return Ok(stopped(Receipt::of(Known::Unconfirmed), &NotPasted::Unknown));
            }
            Err(why) => return Err(pane.why_not(order, &why).await),
        }
        paste::settle().await;
    }
    let mut handed_in = !hands_in;
    for (at, key) in order.keys.iter().enumerate() {
        let pressed = match key {
            Key::Enter if !handed_in => {
                handed_in = true;
                let pressed = hand_in(world, record, &hand, text, &mut receipt).await;
                // a prompt that is not known to be gone is not followed by more keys
                if pressed.is_ok() && receipt.known != Known::Submitted {
                    return Ok(receipt);
                }
                pressed
            }
            Key::Enter => hand.enter().await,
            key => hand.key(key.tmux(), order.force).await,
        };
        match pressed {
            Ok(()) => written = true,
            Err(NotPasted::Unknown) => {
                return Ok(stopped(Receipt { known: Known::Unconfirmed, ..receipt }, &NotPasted::Unknown));
            }
            Err(why) if written => return Ok(stopped(receipt, &why)),
            Err(why) => return Err(pane.why_not(order, &why).await),
        }
        // an Escape with the next key close behind it is read as one key with Alt
        if at + 1 < order.keys.len() {
            paste::settle().await;
        }
    }
    Ok(receipt)
}

fn stopped(receipt: Receipt, why: &NotPasted) -> Receipt {
    Receipt { stopped_by: Some(why.to_string()), ..receipt }
}

/// Presses Enter for a text that was pasted, and sees whether it was taken.
async fn hand_in(
    world: &World,
    record: &Record,
    hand: &Hand<'_>,
    text: &[u8],
    receipt: &mut Receipt,
) -> Result<(), NotPasted> {
    let before = stands(world, record).await;
    let mut witness = Witness::new(world, record, text);
    receipt.known = Known::Typed;
    hand.enter().await?;
    receipt.known = Known::Unconfirmed;
    for again in [false, true] {
        if let Some(proof) = witness.wait().await {
            receipt.known = Known::Submitted;
            receipt.proof = Some(proof.to_owned());
            return Ok(());
        }
        match sending::taken(&before, &perform::look(world, record).await) {
            Taken::Yes => {
                receipt.known = Known::Submitted;
                receipt.proof = Some("screen".to_owned());
                return Ok(());
            }
            Taken::No if again => receipt.known = Known::Typed,
            Taken::No => {
                // it was still busy with the text
                hand.enter().await?;
                receipt.enter_repeated = true;
            }
            Taken::Unknown => return Ok(()),
        }
    }
    Ok(())
}

/// The agent with the text in its prompt line, as far as its screen can be read: a program has not taken a text at once, and no
/// event tells when it has.
async fn stands(world: &World, record: &Record) -> Sight {
    let mut sight = perform::look(world, record).await;
    for _ in 1..LOOKS {
        if sight.composer != crate::coordinator::Composer::Empty {
            break;
        }
        paste::settle().await;
        sight = perform::look(world, record).await;
    }
    sight
}
