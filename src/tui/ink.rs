//! The colours and weights of terminal text: what `ESC [ … m` changes (ECMA-48, SGR; the colour forms of xterm).
//!
//! Blinking and hidden text are left out: what was kept is there to be read, and an idle page stands still.

use ratatui::style::{Color, Modifier, Style};
use vte::Params;

/// How a character looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ink {
    front: Option<Color>,
    back: Option<Color>,
    weight: Modifier,
}

impl Ink {
    /// As ratatui draws it.
    pub(super) fn style(self) -> Style {
        Style { fg: self.front, bg: self.back, ..Style::default() }.add_modifier(self.weight)
    }

    /// What it is after one SGR sequence.
    pub(super) fn after(mut self, params: &Params) -> Ink {
        let mut groups = params.iter();
        while let Some(group) = groups.next() {
            let code = group.first().copied().unwrap_or(0);
            match code {
                0 => self = Ink::default(),
                1 => self.weight |= Modifier::BOLD,
                2 => self.weight |= Modifier::DIM,
                3 => self.weight |= Modifier::ITALIC,
                // `4:0` is no underline, `4:3` a curly one
                4 => self.weight.set(Modifier::UNDERLINED, group.get(1) != Some(&0)),
                7 => self.weight |= Modifier::REVERSED,
                9 => self.weight |= Modifier::CROSSED_OUT,
                21 => self.weight |= Modifier::UNDERLINED,
                22 => self.weight -= Modifier::BOLD | Modifier::DIM,
                23 => self.weight -= Modifier::ITALIC,
                24 => self.weight -= Modifier::UNDERLINED,
                27 => self.weight -= Modifier::REVERSED,
                29 => self.weight -= Modifier::CROSSED_OUT,
                30..=37 => self.front = indexed(code - 30),
                39 => self.front = None,
                40..=47 => self.back = indexed(code - 40),
                49 => self.back = None,
                90..=97 => self.front = indexed(code - 90 + 8),
                100..=107 => self.back = indexed(code - 100 + 8),
                38 | 48 | 58 => {
                    let colour = if group.len() > 1 { within(&group[1..]) } else { following(&mut groups) };
                    match (code, colour) {
                        (38, Some(colour)) => self.front = Some(colour),
                        (48, Some(colour)) => self.back = Some(colour),
                        // the colour of an underline is not drawn
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        self
    }
}

fn indexed(number: u16) -> Option<Color> {
    u8::try_from(number).ok().map(Color::Indexed)
}

fn rgb(parts: [u16; 3]) -> Option<Color> {
    let [red, green, blue] = parts.map(u8::try_from);
    Some(Color::Rgb(red.ok()?, green.ok()?, blue.ok()?))
}

/// `38:5:n`, `38:2:r:g:b` and `38:2:space:r:g:b`, after the first number.
fn within(rest: &[u16]) -> Option<Color> {
    match *rest {
        [5, number, ..] => indexed(number),
        [2, red, green, blue] | [2, _, red, green, blue, ..] => rgb([red, green, blue]),
        _ => None,
    }
}

/// `38;5;n` and `38;2;r;g;b`: the numbers that follow are the colour's.
fn following<'a>(groups: &mut impl Iterator<Item = &'a [u16]>) -> Option<Color> {
    let mut next = || groups.next().and_then(|group| group.first().copied());
    match next()? {
        5 => indexed(next()?),
        2 => rgb([next()?, next()?, next()?]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pen(Ink);

    impl vte::Perform for Pen {
        fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: char) {
            assert_eq!(action, 'm');
            self.0 = self.0.after(params);
        }
    }

    fn ink(sequences: &str) -> Ink {
        let mut pen = Pen(Ink::default());
        vte::Parser::new().advance(&mut pen, sequences.as_bytes());
        pen.0
    }

    #[test]
    fn colours_in_every_form() {
        let front = |colour| Ink { front: Some(colour), ..Ink::default() };
        for (sequences, wanted) in [
            ("\x1b[31m", front(Color::Indexed(1))),
            ("\x1b[92m", front(Color::Indexed(10))),
            ("\x1b[38;5;200m", front(Color::Indexed(200))),
            ("\x1b[38:5:200m", front(Color::Indexed(200))),
            ("\x1b[38;2;1;2;3m", front(Color::Rgb(1, 2, 3))),
            ("\x1b[38:2:1:2:3m", front(Color::Rgb(1, 2, 3))),
            ("\x1b[38:2::1:2:3m", front(Color::Rgb(1, 2, 3))),
            ("\x1b[58;5;9;31m", front(Color::Indexed(1))),
            ("\x1b[38;5;300m", Ink::default()),
            ("\x1b[38;2;1;2m", Ink::default()),
            ("\x1b[31;41;1m\x1b[m", Ink::default()),
            ("\x1b[31;44m\x1b[39;49m", Ink::default()),
        ] {
            assert_eq!(ink(sequences), wanted, "{sequences:?}");
        }
    }

    #[test]
    fn weights_come_and_go() {
        for (sequences, wanted) in [
            ("\x1b[1;3m", Modifier::BOLD | Modifier::ITALIC),
            ("\x1b[1;2m\x1b[22m", Modifier::empty()),
            ("\x1b[4:3m", Modifier::UNDERLINED),
            ("\x1b[4m\x1b[4:0m", Modifier::empty()),
            ("\x1b[5;8m", Modifier::empty()),
            ("\x1b[7;9m\x1b[27m", Modifier::CROSSED_OUT),
        ] {
            assert_eq!(ink(sequences).weight, wanted, "{sequences:?}");
        }
    }
}
