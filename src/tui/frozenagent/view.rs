//! How the model looks: a header, what one must know, the text or the list, a footer. Draws what fits: from one row of a few
//! columns up.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use super::model::{self, Kept, Model, Open, Prompt, cause, no_restore};
use crate::record::{Record, State};
use crate::tui::lines::one_row;
use crate::tui::pager::Seen;

/// Columns left of the text, for the cursor and the range.
const GUTTER: u16 = 1;
/// The widest a column of the list gets.
const COLUMN: usize = 28;
/// What is between two columns of the list.
const GAP: usize = 2;

/// Where everything goes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Layout {
    header: Vec<String>,
    news: Vec<String>,
    /// Rows for the text or the list.
    body: u16,
    footer: bool,
}

/// Fits the texts and the list to the room there is now.
pub(super) fn arrange(model: &mut Model) {
    let layout = layout(model);
    let (width, height) = (usize::from(model.size.0.saturating_sub(GUTTER)), usize::from(layout.body));
    if let Some(open) = &mut model.open {
        open.capture.resize(width, height);
        if let Some(transcript) = &mut open.transcript {
            transcript.resize(width, height);
        }
    }
    if let Some(help) = &mut model.help {
        help.resize(width, height);
    }
    let rows = list_rows(model).max(1);
    let list = &mut model.list;
    list.top = list.top.min(list.cursor).max((list.cursor + 1).saturating_sub(rows));
}

/// How many records of the list fit.
pub(super) fn list_rows(model: &Model) -> usize {
    let body = usize::from(layout(model).body);
    if body > 2 { body - 1 } else { body }
}

/// Draws everything; gives the place of the terminal's cursor while something is typed.
pub fn draw(model: &Model, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let layout = layout(model);
    let mut y = area.y;
    for (row, text) in layout.header.iter().enumerate() {
        let weight = if row == 0 { Modifier::BOLD } else { Modifier::empty() };
        put(buffer, area, 0, y, text, Style::new().add_modifier(weight));
        y += 1;
    }
    for text in &layout.news {
        put(buffer, area, 0, y, text, alarm(model));
        y += 1;
    }
    let body = Rect { y, height: layout.body, ..area };
    match model.pager() {
        Some(pager) if pager.lines().is_empty() => {
            put(buffer, body, GUTTER, body.y, "the capture is empty", Style::new());
        }
        Some(pager) => draw_text(&pager.screen(), body, buffer),
        None => draw_list(model, body, buffer),
    }
    if !layout.footer {
        return None;
    }
    draw_footer(model, &layout, Rect { y: area.bottom().saturating_sub(1), height: 1, ..area }, buffer)
}

/// The help page: the keys that do something now.
pub(super) fn help(model: &Model) -> String {
    let mut page = String::new();
    let mut say = |keys: &str, what: &str| page.push_str(&format!("{keys:<14}{what}\n"));
    if model.open.is_some() {
        say("↑ ↓ j", "one row");
        say("PgUp PgDn", "one page (also Ctrl-B, Ctrl-F, space)");
        say("Ctrl-U Ctrl-D", "half a page");
        say("g G", "the beginning, the end (also Home, End)");
        say("/ n N", "search, next, previous; a capital makes case count");
        say("shift+↑ ↓", "choose a range of lines");
        say("y", "copy the range, or the line");
        say("r", "colours on and off");
        say("t", "the conversation itself, and back");
        if model.from_list {
            say("Esc", "back to the list");
        }
    } else {
        say("↑ ↓ j", "another record");
        say("Enter", "open it");
        say("g G", "the first, the last");
    }
    if model.record().is_some_and(|record| no_restore(record).is_none()) {
        say("R", "bring the agent back, with its conversation");
        say("p", "begin a new conversation in its place");
    }
    if model.record().is_some_and(|record| model.no_drop(record).is_none()) {
        say("k", "drop the record and its capture; asks first");
    }
    say("?", "this page, and back");
    let quit = if model.own.stands_in { "close this pane; the record stays frozen" } else { "quit" };
    say("q", quit);
    page
}

fn layout(model: &Model) -> Layout {
    let (width, height) = (usize::from(model.size.0), model.size.1);
    let most = if height < 3 {
        0
    } else if height < 8 {
        1
    } else {
        usize::from(height / 4).min(3)
    };
    let header = match &model.open {
        Some(open) => fit(&header(open), width, most),
        None => fit(&[(0, format!("{} frozen", model.list.records.len()))], width, most),
    };
    let footer = height > 1;
    let room = height.saturating_sub(header.len() as u16 + u16::from(footer));
    let news = match news(model) {
        // a pane too small for it says it in its footer
        Some(news) if room > 3 => folded(&news, width, if room > 8 { 3 } else { 1 }),
        Some(_) | None => Vec::new(),
    };
    let body = room.saturating_sub(news.len() as u16);
    Layout { header, news, body, footer }
}

fn news(model: &Model) -> Option<String> {
    let of_record = model.open.as_ref().and_then(Open::news);
    match (&model.trouble, of_record) {
        (Some(trouble), _) => Some(format!("the store cannot be trusted: {trouble}")),
        (None, news) => news,
    }
}

/// What the header says, in order, each with its weight: the heaviest goes first where there is no room.
fn header(open: &Open) -> Vec<(u8, String)> {
    let Some(record) = &open.record else {
        return vec![(1, open.id.to_string()), (0, "gone".into())];
    };
    let state = match &record.state {
        _ if !open.there => "gone".to_owned(),
        State::Frozen { lost: Some(lost) } => format!("lost: {}", lost.cause.word()),
        State::Frozen { lost: None }
        | State::Live
        | State::Freezing
        | State::Restoring { .. }
        | State::Aborting { .. } => record.state.name().word().to_owned(),
    };
    let lines = open.capture.lines().len();
    let lines = match open.kept {
        Kept::Nothing => "no capture".to_owned(),
        Kept::Tail => format!("the last {lines} lines"),
        Kept::Ansi | Kept::Txt if lines == 1 => "1 line".to_owned(),
        Kept::Ansi | Kept::Txt => format!("{lines} lines"),
    };
    let items = [
        (6, model::project(record)),
        (0, one_row(&record.window)),
        (3, model::task(record)),
        (2, one_row(model::agent(record))),
        (4, model::when(record)),
        (5, lines),
        (1, state),
    ];
    items.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// The items side by side in at most `most` rows; the heaviest are left out until they fit.
fn fit(items: &[(u8, String)], width: usize, most: usize) -> Vec<String> {
    if most == 0 {
        return Vec::new();
    }
    let mut items = items.to_vec();
    loop {
        let mut rows: Vec<String> = Vec::new();
        for (_, text) in &items {
            match rows.last_mut() {
                Some(row) if row.width() + 3 + text.width() <= width => {
                    row.push_str(" · ");
                    row.push_str(text);
                }
                Some(_) | None => rows.push(cut(text, width)),
            }
        }
        if rows.len() <= most || items.len() == 1 {
            rows.truncate(most);
            return rows;
        }
        let heaviest = items.iter().map(|(weight, _)| *weight).max();
        items.retain(|(weight, _)| Some(*weight) != heaviest);
    }
}

/// A text in at most `most` rows, broken between words where it can be.
fn folded(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match rows.last_mut() {
            Some(row) if row.width() + 1 + word.width() <= width => {
                row.push(' ');
                row.push_str(word);
            }
            Some(_) | None => rows.push(word.to_owned()),
        }
    }
    let left_out = rows.len() > most;
    rows.truncate(most);
    if let Some(last) = rows.last_mut().filter(|_| left_out) {
        last.push_str(" …");
    }
    rows.into_iter().map(|row| cut(&row, width)).collect()
}

/// A text in at most `width` columns, its end replaced by `…` if there is more.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        let mut longer = short.clone();
        longer.push(c);
        if longer.width() + 1 > width {
            break;
        }
        short = longer;
    }
    if width > 0 {
        short.push('…');
    }
    short
}

fn draw_text(screen: &[Seen], area: Rect, buffer: &mut Buffer) {
    for (y, seen) in (area.y..area.bottom()).zip(screen) {
        let mark = match (seen.cursor, seen.chosen) {
            (true, _) => "›",
            (false, true) => "┃",
            (false, false) => " ",
        };
        put(buffer, area, 0, y, mark, Style::new());
        let mut x = GUTTER;
        let mut at = 0;
        for (text, style) in &seen.row.pieces {
            for (piece, hit) in split(text, at, &seen.hits) {
                let style = if hit { style.add_modifier(Modifier::REVERSED) } else { *style };
                put(buffer, area, x, y, piece, style);
                x = x.saturating_add(piece.width() as u16);
            }
            at += text.len();
        }
    }
}

/// The parts of a piece that begins at `at`, each with whether the search found it.
fn split<'a>(text: &'a str, at: usize, hits: &[std::ops::Range<usize>]) -> Vec<(&'a str, bool)> {
    let mut parts = Vec::new();
    let mut from = 0;
    for hit in hits {
        let (start, end) = (hit.start.max(at) - at, hit.end.saturating_sub(at).min(text.len()));
        if start >= end || start < from {
            continue;
        }
        if let (Some(before), Some(found)) = (text.get(from..start), text.get(start..end)) {
            parts.extend([(before, false), (found, true)]);
            from = end;
        }
    }
    parts.push((&text[from..], false));
    parts
}

/// The columns of the list, each with its weight: the heaviest is left out first where there is no room.
const COLUMNS: [(&str, u8); 7] =
    [("project", 3), ("window", 0), ("task", 2), ("agent", 5), ("frozen", 4), ("lines", 6), ("cause", 1)];

/// The column of the windows' names, in [`COLUMNS`].
const WINDOW: usize = 1;
/// What a window's name needs at least, in columns.
const SHORT: usize = 14;

fn cells(record: &Record) -> [String; 7] {
    [
        model::project(record),
        one_row(&record.window),
        model::task(record),
        one_row(model::agent(record)),
        model::when(record),
        if record.capture.is_empty() { String::new() } else { record.capture.lines.to_string() },
        cause(record).to_owned(),
    ]
}

fn draw_list(model: &Model, area: Rect, buffer: &mut Buffer) {
    let list = &model.list;
    if list.records.is_empty() {
        put(buffer, area, GUTTER, area.y, "no agent is frozen", Style::new());
        return;
    }
    let table: Vec<[String; 7]> = list.records.iter().map(|record| cells(record)).collect();
    let natural = |column: usize| {
        let widest = table.iter().map(|cells| cells[column].width()).max().unwrap_or(0);
        if widest == 0 { 0 } else { widest.max(COLUMNS[column].0.len()).min(COLUMN) }
    };
    let mut columns: Vec<(usize, usize)> =
        (0..COLUMNS.len()).map(|column| (column, natural(column))).filter(|(_, width)| *width > 0).collect();
    let room = usize::from(area.width.saturating_sub(GUTTER));
    // names give way before whole columns do
    let least = |column: usize, width: usize| if column == WINDOW { width.min(SHORT) } else { width };
    let needed = |columns: &[(usize, usize)]| {
        columns.iter().map(|(column, width)| least(*column, *width) + GAP).sum::<usize>()
    };
    while columns.len() > 1 && needed(&columns) > room + GAP {
        let heaviest = columns.iter().map(|(column, _)| COLUMNS[*column].1).max();
        columns.retain(|(column, _)| Some(COLUMNS[*column].1) != heaviest);
    }
    let spare = (room + GAP).saturating_sub(needed(&columns));
    for (column, width) in &mut columns {
        *width = (*width).min(least(*column, *width) + spare);
    }
    let titled = area.height > 2;
    let titles: [String; 7] = COLUMNS.map(|(name, _)| name.to_owned());
    let first = titled.then_some((" ", &titles, Style::new().add_modifier(Modifier::DIM)));
    let rows = table.iter().enumerate().skip(list.top).map(|(at, cells)| {
        let here = at == list.cursor;
        let weight = if here { Modifier::BOLD } else { Modifier::empty() };
        (if here { "›" } else { " " }, cells, Style::new().add_modifier(weight))
    });
    for (y, (mark, cells, style)) in (area.y..area.bottom()).zip(first.into_iter().chain(rows)) {
        put(buffer, area, 0, y, mark, style);
        let mut x = usize::from(GUTTER);
        for (column, width) in &columns {
            let text = cut(&cells[*column], (*width).min(room));
            put(buffer, area, u16::try_from(x).unwrap_or(u16::MAX), y, &text, style);
            x += width + GAP;
        }
    }
}

fn draw_footer(model: &Model, layout: &Layout, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let width = usize::from(area.width);
    match &model.prompt {
        Prompt::Search(typed) => {
            // the end of what is typed stays in sight
            let mut shown = typed.as_str();
            while shown.width() + 2 > width && !shown.is_empty() {
                shown = shown.char_indices().nth(1).map_or("", |(at, _)| &shown[at..]);
            }
            put(buffer, area, 0, area.y, &format!("/{shown}"), Style::new());
            let x = (shown.width() as u16 + 1).min(area.width.saturating_sub(1));
            return Some(Position { x: area.x + x, y: area.y });
        }
        Prompt::Drop(id) => {
            let name = model.record().map(|record| one_row(&record.window)).unwrap_or_default();
            let long = format!("drop {name} ({id}) and its capture? D drops, any other key keeps");
            let text = if long.width() <= width { long } else { "drop? D yes, else no".to_owned() };
            put(buffer, area, 0, area.y, &cut(&text, width), alarm(model));
        }
        Prompt::None => {
            let unsaid = news(model).filter(|_| layout.news.is_empty());
            if !model.message.is_empty() {
                put(buffer, area, 0, area.y, &cut(&model.message, width), Style::new());
            } else if let Some(news) = unsaid {
                put(buffer, area, 0, area.y, &cut(&news, width), alarm(model));
            } else {
                put(
                    buffer,
                    area,
                    0,
                    area.y,
                    &standing(model, width),
                    Style::new().add_modifier(Modifier::DIM),
                );
            }
        }
    }
    None
}

/// Where one is, and as many keys as there is room for.
fn standing(model: &Model, width: usize) -> String {
    let (at, count) = match model.pager() {
        Some(pager) => (pager.cursor().line, pager.lines().len()),
        None => (model.list.cursor, model.list.records.len()),
    };
    let mut text = format!("{}/{count}", if count == 0 { 0 } else { at + 1 });
    let in_transcript = model.help.is_none() && model.open.as_ref().is_some_and(|open| open.in_transcript);
    let quit = if model.own.stands_in { "q close" } else { "q quit" };
    let mut keys: Vec<&str> = Vec::new();
    if in_transcript {
        keys.push("transcript");
    }
    match (&model.help, &model.open) {
        (Some(_), _) => keys.extend(["? back"]),
        (None, Some(_)) => {
            keys.extend(["? help", quit, "/ search", if in_transcript { "t back" } else { "t transcript" }]);
            keys.extend(["y copy", "r colour"]);
            if model.from_list {
                keys.push("Esc list");
            }
        }
        (None, None) => keys.extend(["? help", quit, "Enter open"]),
    }
    for key in keys {
        if text.width() + 2 + key.width() > width {
            break;
        }
        text.push_str("  ");
        text.push_str(key);
    }
    cut(&text, width)
}

fn alarm(model: &Model) -> Style {
    let style = Style::new().add_modifier(Modifier::BOLD);
    if model.coloured { style.fg(Color::Yellow) } else { style }
}

/// Writes within the area and nowhere else.
fn put(buffer: &mut Buffer, area: Rect, x: u16, y: u16, text: &str, style: Style) {
    let area = area.intersection(buffer.area);
    if x < area.width && y >= area.y && y < area.bottom() {
        buffer.set_stringn(area.x + x, y, text, usize::from(area.width - x), style);
    }
}

#[cfg(test)]
mod tests;
