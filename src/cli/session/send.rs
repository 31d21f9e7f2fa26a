//! `ait send`: text and keys to a session, and a receipt that says what is known.

use std::io::Read;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::envelope::{self, Answer, Trouble};
use super::face::Face;
use super::view::id_of;
use super::{Meant, begin, refuse_option};
use crate::cli::{Exit, Failure, block_on_any, print};
use crate::coordinator::sending::{Key, Known, Unsendable};
use crate::lifecycle::send::{self, NotSent, Order, Receipt};

/// The longest text, in bytes.
const LONGEST: u64 = 8 * 1024 * 1024;

/// Send text and keys to a session, and say what became of them.
///
/// The text is pasted as it is and stands in no command line of ours. Enter after it hands it in, is checked, and is pressed once
/// more where the screen shows that it was not taken; the text is never pasted again. A session that stands at a dialog, asks for
/// something or has unsent text in its prompt line is sent no text unless --force says so.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  ait send review --text 'Go on' --submit\n  git diff | ait send review --text-stdin --key enter \
                        --format json\n  ait send review --key escape\n\nKeys: enter, escape, c-c, up, down, left, right, tab, \
                        shift-tab, backspace, home, end, page-up, page-down.\n\nExit codes: 0 submitted, or written where nothing was to \
                        be submitted; 10 written, and still in its prompt line; 11 written or not, nobody knows what became of it; 12 \
                        refused, nothing was written."
)]
pub(crate) struct Args {
    #[command(flatten)]
    one: Meant,
    /// The text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// The text from standard input
    #[arg(long)]
    text_stdin: bool,
    /// The text from a file
    #[arg(long, value_name = "FILE")]
    paste_file: Option<PathBuf>,
    /// A key after it; may be given several times
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<Key>,
    /// Hand the text in: --key enter, before all other keys
    #[arg(long)]
    submit: bool,
    /// Send it once under this key, however often it is tried
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Whatever the session is at, and whoever else gets the keys
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: Args) -> Result<Exit, Failure> {
    envelope::say("send", &args.one.given, || sent(&args))
}

fn sent(args: &Args) -> Result<Answer, Trouble> {
    let text = args.text()?;
    let mut keys = args.keys.clone();
    if args.submit && keys.first() != Some(&Key::Enter) {
        keys.insert(0, Key::Enter);
    }
    if text.is_empty() && keys.is_empty() {
        let empty = Trouble::new(Exit::USAGE, "empty-send", "there is neither text nor a key to send");
        return Err(empty.hint("--text, --text-stdin, --paste-file or --key gives it"));
    }
    let (store, found) = args.one.found()?;
    let record = &found.record;
    let id = id_of(Face::ours(), record);
    if found.archived.is_some() {
        return Err(refused(&id, Unsendable::new("not_running", "it is not running")));
    }
    let world = begin::world(store)?;
    let order = Order { text: (!text.is_empty()).then_some(&text), keys: &keys, force: args.force };
    let key = args.idempotency_key.as_deref();
    let done = block_on_any(send::send(&world, record.id, &order, key))?;
    let (receipt, repeated) = done.map_err(|why| match why {
        NotSent::Refused(why) => refused(&id, why),
        NotSent::Store(why) => why.into(),
    })?;
    let names: Vec<&str> = keys.iter().map(|key| key.name()).collect();
    let mut data = json!({
        "id": id, "tmux_session": record.session, "sent_text": !text.is_empty(), "keys": names,
    });
    let what = match (text.is_empty(), names.is_empty()) {
        (false, true) => "text".to_owned(),
        (false, false) => format!("text + keys [{}]", names.join(" ")),
        (true, _) => format!("keys [{}]", names.join(" ")),
    };
    let mut line = format!("sent {what} to {}", print::shown(id.as_bytes()));
    let asked = !text.is_empty() && keys.contains(&Key::Enter);
    let mut exit = Exit::OK;
    if Face::ours() == Face::Ait {
        line.push_str(&format!(": {}", words(&receipt, repeated)));
        add(&mut data, &receipt, repeated);
        exit = code(&receipt, asked);
    }
    Ok(Answer { exit, ..Answer::new(data, format!("{line}\n"))? })
}

impl Args {
    /// The text, from the one source that was named.
    fn text(&self) -> Result<Vec<u8>, Trouble> {
        let given = [self.text.is_some(), self.text_stdin, self.paste_file.is_some()];
        if given.iter().filter(|given| **given).count() > 1 {
            let message = "the text has more than one source";
            return Err(Trouble::new(Exit::USAGE, "multiple-text-sources", message));
        }
        if let Some(text) = &self.text {
            refuse_option::<Self>(text)?;
        }
        if let Some(path) = &self.paste_file {
            return std::fs::File::open(path).and_then(read).map_err(|why| {
                let message = format!("cannot read {}: {why}", path.display());
                Trouble::new(Exit::FAILED, "paste-file-read-failed", message)
            });
        }
        if self.text_stdin {
            return read(std::io::stdin().lock()).map_err(|why| {
                Trouble::new(Exit::FAILED, "stdin-read-failed", format!("cannot read standard input: {why}"))
            });
        }
        Ok(self.text.clone().unwrap_or_default().into_bytes())
    }
}

fn read(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    from.take(LONGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(std::io::Error::other(format!("it is longer than {LONGEST} bytes")));
    }
    Ok(text)
}

fn refused(id: &str, why: Unsendable) -> Trouble {
    let code = if why.word == "not_running" { "session-not-running" } else { "send-refused" };
    let exit = if Face::ours() == Face::Ait { Exit::REFUSED } else { Exit::FAILED };
    let message = format!("nothing was sent: {}", why.seen);
    let trouble = Trouble::new(exit, code, message).detail("id", id).detail("receipt", "refused");
    let trouble = trouble.detail("reason", why.word);
    match why.word {
        "keys_unreadable" => trouble.hint("remove it to forget them; a retry may then be sent twice"),
        _ => trouble,
    }
}

fn code(receipt: &Receipt, asked: bool) -> Exit {
    match receipt.known {
        Known::Submitted => Exit::OK,
        Known::Typed if !asked && receipt.stopped_by.is_none() => Exit::OK,
        Known::Typed => Exit::TYPED,
        Known::Unconfirmed => Exit::UNCONFIRMED,
    }
}

fn words(receipt: &Receipt, repeated: bool) -> String {
    let mut words = receipt.known.word().to_owned();
    let mut more = |text: &str| words.push_str(text);
    if let Some(proof) = &receipt.proof {
        more(&format!(" ({proof})"));
    }
    if receipt.newline_omitted {
        more(", without the line end at its end");
    }
    if let Some(why) = &receipt.stopped_by {
        more(&format!(", {why}"));
    }
    if repeated {
        more("; it was sent before under this key");
    }
    words
}

fn add(data: &mut Value, receipt: &Receipt, repeated: bool) {
    let Some(data) = data.as_object_mut() else { return };
    data.insert("receipt".to_owned(), receipt.known.word().into());
    data.insert("proof".to_owned(), receipt.proof.clone().into());
    data.insert("enter_repeated".to_owned(), receipt.enter_repeated.into());
    data.insert("newline_omitted".to_owned(), receipt.newline_omitted.into());
    data.insert("repeated".to_owned(), repeated.into());
    if let Some(why) = &receipt.stopped_by {
        data.insert("stopped_by".to_owned(), why.as_str().into());
    }
}
