//! A line to the clients of a server: who they are, and the line in a status line for a moment.

use bstr::{BString, ByteSlice};
use tmux_control::{Command, PaneId, WindowId};

use crate::supervisor::notify::Looker;

/// How long a line stands, in milliseconds. Until then, or until a key is pressed (which is not taken), the client's panes are
/// not drawn: long enough to be read, no longer.
const SPAN: &str = "4000";

/// Asks for the clients; the answer is for [`users`].
pub fn clients() -> Command {
    Command::new("list-clients").args(["-F", "#{client_control_mode} #{client_name}"])
}

/// The clients that are terminals, by name.
pub fn users(answer: &[u8]) -> Vec<BString> {
    answer.lines().filter_map(|line| line.strip_prefix(b"0 ")).map(BString::from).collect()
}

/// Asks what the clients show; the answer is for [`shown`].
pub fn lookers() -> Command {
    let format =
        "#{client_control_mode} #{window_id} #{pane_id} #{window_zoomed_flag} #{client_flags} #{client_tty}";
    Command::new("list-clients").args(["-F", format])
}

/// What those show that are terminals; a line that makes no sense is left out.
pub fn shown(answer: &[u8]) -> Vec<Looker> {
    let one = |line: &[u8]| {
        let mut fields = line.splitn_str(5, " ");
        let mut field = || fields.next().and_then(|field| field.to_str().ok());
        let window = field()?.strip_prefix('@')?.parse().ok()?;
        let pane = field()?.strip_prefix('%')?.parse().ok()?;
        let zoomed = field()? == "1";
        let flags: Vec<&str> = field()?.split(',').collect();
        // a terminal that never tells has the focus; a server that does not know of it says none of these
        let focused =
            (flags.contains(&"focused") || !flags.contains(&"attached")) && !flags.contains(&"suspended");
        let tty = fields.next().unwrap_or_default().into();
        Some(Looker { window: WindowId(window), pane: PaneId(pane), zoomed, focused, tty })
    };
    answer.lines().filter_map(|line| one(line.strip_prefix(b"0 ")?)).collect()
}

/// Shows a line to one client alone. Its text is no format: it holds no `#`.
pub fn line(client: &[u8], text: &str) -> Command {
    let command = Command::new("display-message").arg("-c").arg(client);
    command.args(["-d", SPAN, &text.replace('#', "")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_show_is_read_line_by_line() {
        let rows = b"1 @0 %0 0 attached,focused,control-mode,no-output \n0 @3 %7 1 attached,focused,UTF-8 /dev/pts/3\n\
                     0 @4 %8 0 attached,UTF-8 /dev/pts/4\n0 @5 %9 0 UTF-8 \n0 @6 %10 0 attached,focused,suspended x\n0 x\n";
        let looker = |window, pane, zoomed, focused, tty: &str| Looker {
            window: WindowId(window),
            pane: PaneId(pane),
            zoomed,
            focused,
            tty: tty.into(),
        };
        let expected = [
            looker(3, 7, true, true, "/dev/pts/3"),
            looker(4, 8, false, false, "/dev/pts/4"),
            looker(5, 9, false, true, ""),
            looker(6, 10, false, false, "x"),
        ];
        assert_eq!(shown(rows), expected);
    }

    #[test]
    fn only_terminals_are_told() {
        assert_eq!(users(b"1 client-12\n0 /dev/pts/3\n0 a b\n\n"), ["/dev/pts/3", "a b"]);
        let said = line(b"/dev/pts/3", "ait: 1 agent #{pid}").to_line().unwrap();
        assert_eq!(
            said.as_bstr(),
            "display-message -c /dev/pts/3 -d 4000 'ait: 1 agent {pid}'\n".as_bytes().as_bstr()
        );
    }
}
