//! A line to the clients of a server: who they are, and the line in a status line for a moment.

use bstr::{BString, ByteSlice};
use tmux_control::Command;

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

/// Shows a line to one client alone. Its text is no format: it holds no `#`.
pub fn line(client: &[u8], text: &str) -> Command {
    let command = Command::new("display-message").arg("-c").arg(client);
    command.args(["-d", SPAN, &text.replace('#', "")])
}

#[cfg(test)]
mod tests {
    use super::*;

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
