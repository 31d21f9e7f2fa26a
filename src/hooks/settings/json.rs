//! Entries of ours put into and taken out of a settings file of Claude's form, every other byte as it was:
//! `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": …}]}]}}`, comments and trailing commas allowed.
//!
//! What goes in goes right behind an opening bracket, so that taking it out again gives the very bytes from before. An entry
//! put into a list or table that was there and empty has one space before it; so an empty one of the user's is told from one
//! that was made here.

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::own::is_own;

/// Removals in one file at most: more own entries than any number of installs made.
const MOST: usize = 4_096;

/// An entry that is wanted.
pub(super) struct Entry {
    /// The event.
    pub(super) event: &'static str,
    /// The command line.
    pub(super) command: String,
    /// Further fields of the entry, as JSON: `"timeout": 5`.
    pub(super) extra: &'static str,
}

/// The text with these entries of ours and no other of ours. `None` for the file that is not there yet.
///
/// # Errors
/// Why the text cannot be edited, as a lower-case fragment.
pub(super) fn with(text: Option<&str>, wanted: &[Entry]) -> Result<String, String> {
    let Some(text) = text else {
        return with(Some("{\n}\n"), wanted);
    };
    if has_exactly(text, wanted)? {
        return Ok(text.to_owned());
    }
    let mut text = without(text)?;
    for entry in wanted.iter().rev() {
        text = put(&text, entry)?;
    }
    // what was made must be read as what was meant
    if has_exactly(&text, wanted)? {
        Ok(text)
    } else {
        Err("it is of a form that is not understood".to_owned())
    }
}

/// The text without any entry of ours.
///
/// # Errors
/// As [`with`].
pub(super) fn without(text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    for _ in 0..MOST {
        match cut(&text)? {
            Some(shorter) => text = shorter,
            None => return Ok(text),
        }
    }
    Err("it has too many entries".to_owned())
}

/// Whether nothing is left but what [`with`] makes for a file that was not there.
pub(super) fn is_empty(text: &str) -> bool {
    text == "{\n}\n"
}

/// How often each event has an entry of ours.
///
/// # Errors
/// As [`with`].
pub(super) fn own(text: &str) -> Result<Vec<(String, String)>, String> {
    let tree = Tree::read(text)?;
    let mut found = Vec::new();
    for list in tree.events()? {
        for group in &list.value.elements {
            for (_, command) in commands(group) {
                found.push((list.event.clone(), command.to_owned()));
            }
        }
    }
    Ok(found)
}

fn has_exactly(text: &str, wanted: &[Entry]) -> Result<bool, String> {
    let mut found = own(text)?;
    let mut meant: Vec<(String, String)> =
        wanted.iter().map(|entry| (entry.event.to_owned(), entry.command.clone())).collect();
    found.sort();
    meant.sort();
    Ok(found == meant)
}

/// A file, parsed; a mark at its beginning (BOM) is not part of it.
struct Tree<'a> {
    text: &'a str,
    skip: usize,
    root: Object<'a>,
}

struct EventList<'t, 'a> {
    event: String,
    prop: &'t ObjectProp<'a>,
    value: &'t Array<'a>,
}

impl<'a> Tree<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(body, &CollectOptions::default(), &options);
        let parsed = parsed.map_err(|wrong| format!("it does not parse: {wrong}"))?;
        match parsed.value {
            Some(Value::Object(root)) => Ok(Self { text, skip: text.len() - body.len(), root }),
            Some(_) | None => Err("it is no table of settings".to_owned()),
        }
    }

    /// The one property of that name.
    fn get<'t>(table: &'t Object<'a>, name: &str) -> Result<Option<&'t ObjectProp<'a>>, String> {
        let mut all = table.properties.iter().filter(|prop| prop.name.as_str() == name);
        match (all.next(), all.next()) {
            (_, Some(_)) => Err(format!("it has {name:?} twice")),
            (only, None) => Ok(only),
        }
    }

    fn hooks(&self) -> Result<Option<&Object<'a>>, String> {
        match Self::get(&self.root, "hooks")?.map(|prop| &prop.value) {
            None => Ok(None),
            Some(Value::Object(hooks)) => Ok(Some(hooks)),
            Some(_) => Err("its \"hooks\" is no table".to_owned()),
        }
    }

    /// Every event's list; what is no list is no event's.
    fn events(&self) -> Result<Vec<EventList<'_, 'a>>, String> {
        let Some(hooks) = self.hooks()? else { return Ok(Vec::new()) };
        let list = |prop: &'_ ObjectProp<'a>| prop.name.as_str().to_owned();
        Ok(hooks
            .properties
            .iter()
            .filter_map(|prop| match &prop.value {
                Value::Array(value) => Some(EventList { event: list(prop), prop, value }),
                _ => None,
            })
            .collect())
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The text with this put behind the opening bracket of a list or table.
    fn inserted(&self, bracket: Range, empty: bool, depth: usize, what: &str) -> String {
        let at = self.skip + bracket.start + 1;
        let (before, after) = self.text.split_at(at);
        let open =
            after.find(|c: char| !matches!(c, ' ' | '\t')).and_then(|at| after.get(at..)).unwrap_or("");
        let lined = open.starts_with(['\n', '\r']);
        let lead = match (empty, lined) {
            (true, _) => " ".to_owned(),
            (false, true) => format!("{}{}", self.newline(), "  ".repeat(depth)),
            (false, false) => String::new(),
        };
        let comma = if empty { "" } else { "," };
        format!("{before}{lead}{what}{comma}{after}")
    }
}

/// The entries of ours in one element of an event's list.
fn commands<'t>(group: &'t Value<'_>) -> Vec<(&'t Value<'t>, &'t str)> {
    let Value::Object(group) = group else { return Vec::new() };
    let hooks = group.properties.iter().find(|prop| prop.name.as_str() == "hooks").map(|prop| &prop.value);
    let Some(Value::Array(hooks)) = hooks else { return Vec::new() };
    hooks
        .elements
        .iter()
        .filter_map(|hook| {
            let Value::Object(table) = hook else { return None };
            let command = table.properties.iter().find(|prop| prop.name.as_str() == "command")?;
            let Value::StringLit(command) = &command.value else { return None };
            is_own(&command.value).then_some((hook, command.value.as_ref()))
        })
        .collect()
}

fn put(text: &str, entry: &Entry) -> Result<String, String> {
    let tree = Tree::read(text)?;
    let command = serde_json::to_string(&entry.command).map_err(|wrong| wrong.to_string())?;
    let extra = if entry.extra.is_empty() { String::new() } else { format!(", {}", entry.extra) };
    let group = format!("{{\"hooks\": [{{\"type\": \"command\", \"command\": {command}{extra}}}]}}");
    let Some(hooks) = tree.hooks()? else {
        // lined like the rest, where the rest is
        let (open, close) = match tree.text[tree.skip..].contains('\n') {
            true => (format!("{}    ", tree.newline()), format!("{}  ", tree.newline())),
            false => (String::new(), String::new()),
        };
        let made = format!("\"hooks\": {{{open}\"{}\": [{group}]{close}}}", entry.event);
        let fresh = tree.text == "{\n}\n";
        if fresh {
            return Ok(format!("{{\n  {made}\n}}\n"));
        }
        return Ok(tree.inserted(tree.root.range, tree.root.properties.is_empty(), 1, &made));
    };
    match Tree::get(hooks, entry.event)?.map(|prop| &prop.value) {
        None => {
            let made = format!("\"{}\": [{group}]", entry.event);
            Ok(tree.inserted(hooks.range, hooks.properties.is_empty(), 2, &made))
        }
        Some(Value::Array(list)) => Ok(tree.inserted(list.range, list.elements.is_empty(), 3, &group)),
        Some(_) => Err(format!("its \"hooks\" has a {:?} that is no list", entry.event)),
    }
}

/// Takes the first entry of ours out; `None` if there is none.
fn cut(text: &str) -> Result<Option<String>, String> {
    let tree = Tree::read(text)?;
    for list in tree.events()? {
        for group in &list.value.elements {
            let own = commands(group);
            let Some((hook, _)) = own.first() else { continue };
            let Value::Object(table) = group else { continue };
            let inner =
                table.properties.iter().find(|prop| prop.name.as_str() == "hooks").map(|prop| &prop.value);
            let Some(Value::Array(inner)) = inner else { continue };
            if inner.elements.len() > 1 {
                return Ok(Some(removed(&tree, hook.range(), inner.range).0));
            }
            let (shorter, spaced) = removed(&tree, group.range(), list.value.range);
            if list.value.elements.len() > 1 || spaced {
                return Ok(Some(shorter));
            }
            // the list was made for it
            let Some(hooks) = tree.hooks()? else { continue };
            let (shorter, spaced) = removed(&tree, list.prop.range, hooks.range);
            if hooks.properties.len() > 1 || spaced {
                return Ok(Some(shorter));
            }
            // and so was the table
            let Some(prop) = Tree::get(&tree.root, "hooks")? else { continue };
            return Ok(Some(removed(&tree, prop.range, tree.root.range).0));
        }
    }
    Ok(None)
}

/// The text without one element of a list or table, and the comma that parts it from the next one or the one before; whether
/// it stood alone behind a bracket and one space.
fn removed(tree: &Tree<'_>, element: Range, container: Range) -> (String, bool) {
    let text = &tree.text[tree.skip..];
    let (mut start, mut end) = (element.start, element.end);
    let lead_from = text[..start].trim_end_matches([' ', '\t', '\r', '\n']).len();
    let after = &text[end..];
    let blank = after.len() - after.trim_start_matches([' ', '\t', '\r', '\n']).len();
    let first = lead_from == container.start + 1;
    let followed = after[blank..].starts_with(',');
    let mut spaced = false;
    if first {
        spaced = !followed && &text[lead_from..start] == " ";
        start = lead_from;
        if followed {
            end += blank + 1;
        }
    } else if text[..lead_from].ends_with(',') && !followed {
        start = lead_from - 1;
    } else if followed {
        // behind a comment, or between others: its own line goes with it
        start = lead_from;
        end += blank + 1;
    }
    let fresh = format!("{}{}", &tree.text[..tree.skip + start], &tree.text[tree.skip + end..]);
    (fresh, spaced)
}
