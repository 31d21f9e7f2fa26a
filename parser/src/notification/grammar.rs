//! The grammar of one notification line: one function per rule, the rule above it.
//!
//! ```text
//! line   = "%" name [SP fields]
//! sid    = "$" 1*DIGIT        wid = "@" 1*DIGIT        pid = "%" 1*DIGIT
//! rest   = *OCTET             ; to the end of the line, may be empty
//! ```
//! Numbers have no leading zeros, so that printing is the exact inverse.

use memchr::{memchr, memmem, memrchr};
use nom::{
    IResult, Parser,
    branch::alt,
    bytes::complete::tag,
    character::complete::char,
    combinator::{all_consuming, map, rest, value},
    error::{Error, ErrorKind},
    sequence::{separated_pair, terminated},
};

use super::Notification;
use crate::id::{pane_id, session_id, window_id};

/// The answer for a line that is no notification at all.
pub(crate) const NONE: &str = "%";

/// `notification = "%" name [SP fields]`, by name. Errs with the rule that did not fit.
#[inline]
pub(crate) fn notification(line: &[u8]) -> Result<Notification<'_>, &'static str> {
    // By far the most frequent line in a busy stream.
    if let Some(fields) = line.strip_prefix(b"%output ") {
        return whole("%output", output, fields);
    }
    let Some((b'%', after)) = line.split_first() else { return Err(NONE) };
    let (name, tail) = after.split_at(memchr(b' ', after).unwrap_or(after.len()));
    let fields = tail.get(1..);
    let known = |rule, parse: fn(&[u8]) -> IResult<&[u8], Notification<'_>>| match fields {
        Some(fields) => whole(rule, parse, fields),
        None => Err(rule),
    };
    match name {
        b"extended-output" => known("%extended-output", extended_output),
        b"pause" => known("%pause", pause),
        b"continue" => known("%continue", continued),
        b"layout-change" => known("%layout-change", layout_change),
        b"window-add" => known("%window-add", window_add),
        b"window-close" => known("%window-close", window_close),
        b"unlinked-window-add" => known("%unlinked-window-add", unlinked_window_add),
        b"unlinked-window-close" => known("%unlinked-window-close", unlinked_window_close),
        b"window-renamed" => known("%window-renamed", window_renamed),
        b"unlinked-window-renamed" => known("%unlinked-window-renamed", unlinked_window_renamed),
        b"window-pane-changed" => known("%window-pane-changed", window_pane_changed),
        b"session-window-changed" => known("%session-window-changed", session_window_changed),
        b"session-changed" => known("%session-changed", session_changed),
        b"client-session-changed" => known("%client-session-changed", client_session_changed),
        b"client-detached" => known("%client-detached", client_detached),
        b"session-renamed" => known("%session-renamed", session_renamed),
        b"pane-mode-changed" => known("%pane-mode-changed", pane_mode_changed),
        b"paste-buffer-changed" => known("%paste-buffer-changed", paste_buffer_changed),
        b"paste-buffer-deleted" => known("%paste-buffer-deleted", paste_buffer_deleted),
        b"subscription-changed" => known("%subscription-changed", subscription_changed),
        b"message" => known("%message", message),
        b"config-error" => known("%config-error", config_error),
        // `exit = "%exit" [SP rest]`
        b"exit" => Ok(Notification::Exit { reason: fields }),
        // `sessions-changed = "%sessions-changed"`
        b"sessions-changed" if fields.is_none() => Ok(Notification::SessionsChanged),
        b"sessions-changed" => Err("%sessions-changed"),
        b"output" => Err("%output"),
        b"begin" | b"end" | b"error" => Err(NONE),
        // `unknown = "%" %x61-7A *(%x61-7A / DIGIT / "-") [SP rest]`
        [b'a'..=b'z', more @ ..]
            if more.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')) =>
        {
            Ok(Notification::Unknown { name, rest: tail })
        }
        _ => Err(NONE),
    }
}

#[inline]
fn whole<'a>(
    rule: &'static str,
    parse: impl Fn(&'a [u8]) -> IResult<&'a [u8], Notification<'a>>,
    fields: &'a [u8],
) -> Result<Notification<'a>, &'static str> {
    match all_consuming(parse).parse(fields) {
        Ok((_, notification)) => Ok(notification),
        Err(_) => Err(rule),
    }
}

/// `output = "%output" SP pid SP rest`
#[inline]
fn output(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(separated_pair(pane_id, char(' '), rest), |(pane, value)| Notification::Output { pane, value })
        .parse(input)
}

/// `extended-output = "%extended-output" SP pid SP age *(SP future) " : " rest`
fn extended_output(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map((terminated(pane_id, char(' ')), decimal64, future_fields, rest), |(pane, age, future, value)| {
        Notification::ExtendedOutput { pane, age, future, value }
    })
    .parse(input)
}

/// `future = *(SP word) " : "`: to the first colon that stands alone; gives what is before it.
fn future_fields(input: &[u8]) -> IResult<&[u8], &[u8]> {
    match memmem::find(input, b" : ") {
        Some(at) if at == 0 || input[0] == b' ' => Ok((&input[at + 3..], &input[..at])),
        _ => Err(no(input)),
    }
}

/// `pause = "%pause" SP pid`
fn pause(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(pane_id, |pane| Notification::Pause { pane }).parse(input)
}

/// `continue = "%continue" SP pid`
fn continued(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(pane_id, |pane| Notification::Continue { pane }).parse(input)
}

/// `layout-change = "%layout-change" SP wid SP [layout] SP [layout] SP [flags]`
fn layout_change(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map((terminated(window_id, char(' ')), terminated(word, char(' ')), terminated(word, char(' ')), word), {
        |(window, layout, visible, flags)| Notification::LayoutChange { window, layout, visible, flags }
    })
    .parse(input)
}

/// `window-add = "%window-add" SP wid`
fn window_add(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(window_id, |window| Notification::WindowAdd { window }).parse(input)
}

/// `window-close = "%window-close" SP wid`
fn window_close(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(window_id, |window| Notification::WindowClose { window }).parse(input)
}

/// `unlinked-window-add = "%unlinked-window-add" SP wid`
fn unlinked_window_add(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(window_id, |window| Notification::UnlinkedWindowAdd { window }).parse(input)
}

/// `unlinked-window-close = "%unlinked-window-close" SP wid`
fn unlinked_window_close(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(window_id, |window| Notification::UnlinkedWindowClose { window }).parse(input)
}

/// `window-renamed = "%window-renamed" SP wid SP rest`
fn window_renamed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(separated_pair(window_id, char(' '), rest), |(window, name)| Notification::WindowRenamed {
        window,
        name,
    })
    .parse(input)
}

/// `unlinked-window-renamed = "%unlinked-window-renamed" SP wid SP rest`
fn unlinked_window_renamed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(separated_pair(window_id, char(' '), rest), |(window, name)| Notification::UnlinkedWindowRenamed {
        window,
        name,
    })
    .parse(input)
}

/// `window-pane-changed = "%window-pane-changed" SP wid SP pid`
fn window_pane_changed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(separated_pair(window_id, char(' '), pane_id), |(window, pane)| Notification::WindowPaneChanged {
        window,
        pane,
    })
    .parse(input)
}

/// `session-window-changed = "%session-window-changed" SP sid SP wid`
fn session_window_changed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(separated_pair(session_id, char(' '), window_id), |(session, window)| {
        Notification::SessionWindowChanged { session, window }
    })
    .parse(input)
}

/// `session-changed = "%session-changed" SP sid SP rest`
fn session_changed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(separated_pair(session_id, char(' '), rest), |(session, name)| Notification::SessionChanged {
        session,
        name,
    })
    .parse(input)
}

/// `client-session-changed = "%client-session-changed" SP client SP sid SP rest`
///
/// The client's name runs to the first ` $N `, so that a space in it does no harm.
fn client_session_changed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    for at in memmem::find_iter(input, b" $") {
        let named: IResult<&[u8], _> = separated_pair(session_id, char(' '), rest).parse(&input[at + 1..]);
        if let Ok((left, (session, name))) = named {
            return Ok((left, Notification::ClientSessionChanged { client: &input[..at], session, name }));
        }
    }
    Err(no(input))
}

/// `client-detached = "%client-detached" SP rest`
fn client_detached(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(rest, |client| Notification::ClientDetached { client }).parse(input)
}

/// `session-renamed = "%session-renamed" SP sid SP rest`
fn session_renamed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(separated_pair(session_id, char(' '), rest), |(session, name)| Notification::SessionRenamed {
        session,
        name,
    })
    .parse(input)
}

/// `pane-mode-changed = "%pane-mode-changed" SP pid`
fn pane_mode_changed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(pane_id, |pane| Notification::PaneModeChanged { pane }).parse(input)
}

/// `paste-buffer-changed = "%paste-buffer-changed" SP rest`
fn paste_buffer_changed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(rest, |name| Notification::PasteBufferChanged { name }).parse(input)
}

/// `paste-buffer-deleted = "%paste-buffer-deleted" SP rest`
fn paste_buffer_deleted(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(rest, |name| Notification::PasteBufferDeleted { name }).parse(input)
}

/// `subscription-changed = "%subscription-changed" SP name SP sid SP (wid / "-") SP (index / "-") SP (pid / "-")
/// " : " rest`
///
/// The name may hold anything but a colon, spaces too, so the four fields are found from the first colon backwards.
fn subscription_changed(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    let colon = memchr(b':', input).ok_or_else(|| no(input))?;
    let (head, value) = (input[..colon].strip_suffix(b" "), input[colon + 1..].strip_prefix(b" "));
    let (Some(head), Some(value)) = (head, value) else { return Err(no(input)) };
    let mut cut = head.len();
    for _ in 0..4 {
        cut = memrchr(b' ', &head[..cut]).ok_or_else(|| no(input))?;
    }
    let (_, (session, window, index, pane)) = all_consuming((
        terminated(session_id, char(' ')),
        terminated(or_dash(window_id), char(' ')),
        terminated(or_dash(decimal32), char(' ')),
        or_dash(pane_id),
    ))
    .parse(&head[cut + 1..])?;
    let name = &head[..cut];
    Ok((&[], Notification::SubscriptionChanged { name, session, window, index, pane, value }))
}

/// `message = "%message" SP rest`
fn message(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(rest, |text| Notification::Message { text }).parse(input)
}

/// `config-error = "%config-error" SP rest`
fn config_error(input: &[u8]) -> IResult<&[u8], Notification<'_>> {
    map(rest, |text| Notification::ConfigError { text }).parse(input)
}

/// `word = *<any octet but SP>`
fn word(input: &[u8]) -> IResult<&[u8], &[u8]> {
    let end = memchr(b' ', input).unwrap_or(input.len());
    Ok((&input[end..], &input[..end]))
}

/// `or-dash = field / "-"`
fn or_dash<'a, T: Clone>(
    field: impl Parser<&'a [u8], Output = T, Error = Error<&'a [u8]>>,
) -> impl Parser<&'a [u8], Output = Option<T>, Error = Error<&'a [u8]>> {
    alt((value(None, tag("-")), map(field, Some)))
}

/// `decimal = "0" / (%x31-39 *DIGIT)`, at most 2³² - 1
#[inline]
pub(crate) fn decimal32(input: &[u8]) -> IResult<&[u8], u32> {
    let (left, number) = decimal64(input)?;
    u32::try_from(number).map_or_else(|_| Err(no(input)), |number| Ok((left, number)))
}

/// `decimal = "0" / (%x31-39 *DIGIT)`, at most 2⁶⁴ - 1
#[inline]
pub(crate) fn decimal64(input: &[u8]) -> IResult<&[u8], u64> {
    let mut number = 0u64;
    let mut end = 0;
    while let Some(digit) = input.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        number = match number.checked_mul(10).and_then(|number| number.checked_add(u64::from(digit))) {
            Some(number) => number,
            None => return Err(no(input)),
        };
        end += 1;
    }
    if end == 0 || (end > 1 && input[0] == b'0') {
        return Err(no(input));
    }
    Ok((&input[end..], number))
}

/// `guard = ("%begin" / "%end" / "%error") SP time SP number SP flags`: the triple after the word.
pub(crate) fn triple(input: &[u8]) -> Option<crate::Guard> {
    let fields = (terminated(decimal64, char(' ')), terminated(decimal32, char(' ')), decimal32);
    let (_, (time, number, flags)) = all_consuming(fields).parse(input).ok()?;
    Some(crate::Guard { time, number, flags: u8::try_from(flags).ok()? })
}

fn no(input: &[u8]) -> nom::Err<Error<&[u8]>> {
    nom::Err::Error(Error::new(input, ErrorKind::Verify))
}
