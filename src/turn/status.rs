//! The Program Status Protocol (`OSC 7501`, rev 0.4): a program's own account of what it does.
//!
//! Untrusted: whatever breaks a limit drops the whole report, and its words are freed of what would reorder or hide text.

use std::collections::BTreeMap;

/// The longest id of a record, in bytes, and its longest and most segments.
const ID: (usize, usize, usize) = (128, 32, 8);
/// The longest name of a program, in bytes.
const APP: usize = 32;
/// The longest title, in bytes.
const TITLE: usize = 192;
/// The longest message, in bytes.
const MESSAGE: usize = 2048;
/// Records that are kept of one pane.
const RECORDS: usize = 64;

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What is done.
    pub doing: Doing,
    /// Of which part of the program: a path, empty for the program itself.
    pub id: String,
    /// How far it is, in percent.
    pub progress: Option<u8>,
    /// The program's name.
    pub app: Option<String>,
    /// What it works on.
    pub title: Option<String>,
    /// More words.
    pub message: Option<String>,
}

/// The states of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Nothing, and nothing was.
    Idle,
    /// It works.
    Working,
    /// It is done, and nobody has looked yet.
    Done,
    /// It waits for somebody.
    Blocked(Option<Want>),
    /// It failed.
    Error,
    /// It takes back what it said, also of what is below.
    Clear,
}

/// What a blocked program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A permission.
    Permission,
    /// An answer.
    Question,
    /// A login.
    Login,
}

impl Status {
    /// Reads `key=value:…`. `None` for what is no report or breaks a limit; keys that are not known are left out, and of a key
    /// that comes twice the last value counts.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut fields: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
        for field in body.split(|byte| *byte == b':') {
            let at = field.iter().position(|byte| *byte == b'=')?;
            fields.insert(&field[..at], &field[at + 1..]);
        }
        let get = |key: &str| fields.get(key.as_bytes()).copied();
        let want = match get("kind") {
            Some(b"permission") => Some(Want::Permission),
            Some(b"question") => Some(Want::Question),
            Some(b"auth") => Some(Want::Login),
            Some(_) | None => None,
        };
        let doing = match get("state")? {
            b"idle" => Doing::Idle,
            b"working" => Doing::Working,
            b"done" => Doing::Done,
            b"blocked" => Doing::Blocked(want),
            b"error" => Doing::Error,
            b"clear" => Doing::Clear,
            _ => return None,
        };
        let id = get("id").map_or(Some(String::new()), |id| word(id, ID.0, is_path))?;
        let progress = match get("progress") {
            Some(text) => {
                Some(std::str::from_utf8(text).ok()?.parse().ok().filter(|percent: &u8| *percent <= 100)?)
            }
            None => None,
        };
        let app = match get("app") {
            Some(app) => Some(word(app, APP, is_segment)?),
            None => None,
        };
        let words = |key, longest| match get(key) {
            Some(coded) => text(coded, longest).map(Some),
            None => Some(None),
        };
        Some(Self {
            doing,
            id,
            progress,
            app,
            title: words("title", TITLE)?,
            message: words("msg", MESSAGE)?,
        })
    }
}

fn word(bytes: &[u8], longest: usize, fits: fn(&str) -> bool) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= longest && fits(text))?;
    Some(text.to_owned())
}

fn is_path(text: &str) -> bool {
    text.split('/').count() <= ID.2 && text.split('/').all(is_segment)
}

fn is_segment(text: &str) -> bool {
    (1..=ID.1).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte))
}

/// Coded text of at most `longest` bytes, without the characters that reorder or hide text.
fn text(coded: &[u8], longest: usize) -> Option<String> {
    let text = String::from_utf8(base64(coded)?).ok().filter(|text| text.len() <= longest)?;
    if text.chars().any(char::is_control) {
        return None;
    }
    let hides = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}');
    Some(text.chars().filter(|c| !hides(*c)).collect())
}

/// Base64 of the standard alphabet, with or without its padding.
fn base64(coded: &[u8]) -> Option<Vec<u8>> {
    let end = coded.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    if coded.len() - end > 2 || end % 4 == 1 || (coded.len() > end && !coded.len().is_multiple_of(4)) {
        return None;
    }
    let mut bytes = Vec::with_capacity(end * 3 / 4);
    let (mut bits, mut held) = (0u32, 0);
    for byte in &coded[..end] {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    Some(bytes)
}

/// What the programs of one pane last reported, each part of them for itself.
#[derive(Debug, Clone, Default)]
pub struct Statuses {
    /// The reports, the least recently renewed first.
    all: Vec<Status>,
}

impl Statuses {
    /// Takes a report: it takes the place of the one before of the same part, or removes it and all below.
    pub fn take(&mut self, status: Status) {
        if status.doing == Doing::Clear {
            self.all.retain(|one| !is_below(&one.id, &status.id));
            return;
        }
        self.all.retain(|one| one.id != status.id);
        if self.all.len() == RECORDS {
            self.all.remove(0);
        }
        self.all.push(status);
    }

    /// A program ended, or a shell shows its prompt: nobody works or waits any more.
    pub fn settle(&mut self) {
        self.all.retain(|one| match one.doing {
            Doing::Working | Doing::Blocked(_) => false,
            Doing::Idle | Doing::Done | Doing::Error | Doing::Clear => true,
        });
    }

    /// The terminal was reset.
    pub fn reset(&mut self) {
        self.all.clear();
    }

    /// What the program itself reported; its parts do not speak for it.
    #[must_use]
    pub fn root(&self) -> Option<&Status> {
        self.all.iter().find(|one| one.id.is_empty())
    }

    /// How many parts have something to say.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// Whether `id` is `root` or below it.
fn is_below(id: &str, root: &str) -> bool {
    root.is_empty() || id.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> Option<Status> {
        Status::parse(body.as_bytes())
    }

    #[test]
    fn reports_within_and_beyond_the_limits() {
        let status = parsed("state=blocked:app=claude-code:kind=permission:msg=YXBwcm92ZQ==").unwrap();
        assert_eq!(status.doing, Doing::Blocked(Some(Want::Permission)));
        assert_eq!(
            (status.app.as_deref(), status.message.as_deref()),
            (Some("claude-code"), Some("approve"))
        );
        assert_eq!(parsed("state=idle:state=working:later=x").unwrap().doing, Doing::Working);
        assert_eq!(parsed("state=working:kind=auth:progress=100").unwrap().progress, Some(100));
        assert_eq!(parsed("state=done:msg=YQ").unwrap().message.as_deref(), Some("a"), "no padding");
        assert_eq!(parsed("state=done:msg=").unwrap().message.as_deref(), Some(""));
        assert_eq!(parsed("state=done:msg=4oCuYQ==").unwrap().message.as_deref(), Some("a"), "turned round");
        let long = |n: usize| "x".repeat(n);
        assert!(parsed(&format!("state=idle:app={}", long(32))).is_some());
        assert!(parsed(&format!("state=idle:id={}", ["a"; 8].join("/"))).is_some());
        for body in [
            "",
            "state",
            "app=x",
            "state=new",
            "state=working:progress=101",
            "state=working:progress=-1",
            "state=idle:id=",
            "state=idle:id=a//b",
            "state=idle:id=a b",
            "state=idle:msg=!",
            "state=idle:msg=YQ=",
            "state=idle:msg=Y",
            "state=idle:msg=/w==",
            "state=idle:msg=Cg==",
            &format!("state=idle:app={}", long(33)),
            &format!("state=idle:id={}", ["a"; 9].join("/")),
            &format!("state=idle:id={}", long(33)),
            // 193 bytes of text
            &format!("state=idle:title={}", "YWFh".repeat(65)),
        ] {
            assert_eq!(parsed(body), None, "{body}");
        }
    }

    #[test]
    fn a_report_replaces_and_a_clear_takes_all_below() {
        let mut all = Statuses::default();
        let mut take = |body: &str| {
            all.take(parsed(body).unwrap());
            (all.root().map(|root| root.doing), all.len())
        };
        assert_eq!(take("state=working:progress=5"), (Some(Doing::Working), 1));
        assert_eq!(take("state=blocked:id=a/b"), (Some(Doing::Working), 2));
        assert_eq!(take("state=done"), (Some(Doing::Done), 2));
        assert_eq!(take("state=working:id=ab"), (Some(Doing::Done), 3));
        assert_eq!(take("state=clear:id=a"), (Some(Doing::Done), 2));
        for at in 0..100 {
            take(&format!("state=working:id=x{at}"));
        }
        assert_eq!(take("state=idle"), (Some(Doing::Idle), RECORDS));
        let mut settled = all.clone();
        settled.settle();
        assert_eq!(settled.len(), 1);
        all.take(parsed("state=clear").unwrap());
        assert!(all.is_empty());
    }
}
