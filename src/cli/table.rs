//! Columns of text, each as wide as its widest cell.

/// Lays `rows` out below `head`, two spaces between the columns and `indent` spaces before them; the last column is not
/// padded. Cells are shown text already.
pub(super) fn columns(indent: usize, head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| wide(cell)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(wide(cell));
        }
    }
    let mut out = String::new();
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let shown = std::iter::once(&head).filter(|head| head.iter().any(|cell| !cell.is_empty())).chain(rows);
    for row in shown {
        let mut line = " ".repeat(indent);
        for (width, cell) in widths.iter().zip(row) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width.saturating_sub(wide(cell)) + 2));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn wide(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "long cell".to_owned()], vec!["bbb".to_owned(), "x".to_owned()]];
        assert_eq!(columns(2, &["N", "WHAT"], &rows), "  N    WHAT\n  a    long cell\n  bbb  x\n");
        assert_eq!(columns(0, &["", ""], &rows[..1]), "a  long cell\n");
    }
}
