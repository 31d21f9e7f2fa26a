//! How records are written as JSON: keys sorted, two spaces, non-ASCII as `\uXXXX` (the earlier scripts' form), fields
//! this version does not know kept as they stood. Equal content gives equal bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::value::RawValue;

/// Fields this version does not know, by name, each with its JSON text as it stood.
#[derive(Debug, Clone, Default)]
pub struct Unknown(pub(super) BTreeMap<String, Box<RawValue>>);

impl Unknown {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The JSON text of the field of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|raw| raw.get())
    }
}

impl PartialEq for Unknown {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(a, b)| a.0 == b.0 && a.1.get() == b.1.get())
    }
}

impl Eq for Unknown {}

/// A key of an object, borrowed from the text where it holds no escape.
pub(super) struct Key<'de>(pub(super) Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Whether a field is left out of the object; only an absent option is.
pub(super) trait Field {
    fn absent(&self) -> bool {
        false
    }
}

impl<T> Field for Option<T> {
    fn absent(&self) -> bool {
        self.is_none()
    }
}

impl Field for String {}
impl Field for &str {}
impl Field for i32 {}
impl Field for i64 {}
impl Field for u32 {}
impl Field for u64 {}
impl Field for bool {}
impl Field for super::RecordId {}
impl Field for super::Stamp {}
impl Field for super::LossCause {}
impl<T> Field for Vec<T> {}

/// Declares a struct that is read from a JSON object; a missing field has its default, an unknown one is kept.
macro_rules! read_object {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$fmeta:meta])* $fvis:vis $key:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$fmeta])* $fvis $key: $ty,)*
            /// Fields this version does not know.
            $vis unknown: $crate::record::json::Unknown,
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Object;
                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut object = <$name>::default();
                        while let Some($crate::record::json::Key(key)) = map.next_key()? {
                            match key.as_ref() {
                                $(stringify!($key) => object.$key = map.next_value()?,)*
                                _ => {
                                    object.unknown.0.insert(key.into_owned(), map.next_value()?);
                                }
                            }
                        }
                        Ok(object)
                    }
                }
                deserializer.deserialize_map(Object)
            }
        }
    };
}
pub(super) use read_object;

/// Prints an object: the named fields, which must come sorted, merged with the unknown ones.
macro_rules! print_object {
    ($serializer:expr, $unknown:expr, { $($key:ident: $value:expr,)* }) => {{
        use serde::ser::SerializeMap as _;
        use $crate::record::json::Field as _;
        let mut map = $serializer.serialize_map(None)?;
        let mut rest = $unknown.0.iter().peekable();
        $(
            if !rest.peek().is_none() {
                while let Some((key, raw)) = rest.next_if(|(key, _)| key.as_str() < stringify!($key)) {
                    map.serialize_entry(key, raw)?;
                }
            }
            let value = $value;
            if !value.absent() {
                map.serialize_entry(stringify!($key), &value)?;
            }
        )*
        for (key, raw) in rest {
            map.serialize_entry(key, raw)?;
        }
        map.end()
    }};
}
pub(super) use print_object;

/// The store's one way to lay out JSON.
struct Canonical(PrettyFormatter<'static>);

impl Formatter for Canonical {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut plain = 0;
        let bytes = fragment.as_bytes();
        // The whole fragment at once in the usual case: printable ASCII.
        if bytes.iter().all(|b| (0x20..0x7f).contains(b)) {
            return writer.write_all(bytes);
        }
        for (at, c) in fragment.char_indices() {
            if (' '..='~').contains(&c) {
                continue;
            }
            writer.write_all(&bytes[plain..at])?;
            plain = at + c.len_utf8();
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
        }
        writer.write_all(&bytes[plain..])
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

/// The canonical text of a value, without a trailing newline.
///
/// # Errors
/// Only if the value's own `Serialize` fails.
pub fn canonical<T: Serialize + ?Sized>(value: &T, room: usize) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(room);
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, Canonical(PrettyFormatter::new()));
    value.serialize(&mut serializer)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_ascii_with_surrogate_pairs_like_the_earlier_scripts_write_it() {
        let text = "a|\u{7f}\t\u{1}é\u{20ac}\u{1f600}\"\\";
        let printed = String::from_utf8(canonical(text, 0).unwrap()).unwrap();
        assert_eq!(printed, r#""a|\u007f\t\u0001\u00e9\u20ac\ud83d\ude00\"\\""#);
        assert_eq!(serde_json::from_str::<String>(&printed).unwrap(), text);
    }
}
