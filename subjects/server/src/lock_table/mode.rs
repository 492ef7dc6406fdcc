//! Lock modes, scopes, and which modes exclude each other.

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Shared: many owners may read.
    Shared,
    /// Exclusive; the same owner may take it again (it cumulates).
    Exclusive,
    /// Exclusive, and not even its owner may take it again.
    Sole,
    /// Optimistic: shared now, to be promoted to exclusive when the data is written.
    Optimistic,
}

impl Mode {
    pub const ALL: [Mode; 4] = [Mode::Shared, Mode::Exclusive, Mode::Sole, Mode::Optimistic];

    /// The letter of the enqueue service: S, E, X or O.
    pub fn letter(self) -> &'static str {
        match self {
            Mode::Shared => "S",
            Mode::Exclusive => "E",
            Mode::Sole => "X",
            Mode::Optimistic => "O",
        }
    }

    /// Reads a letter in either case. `R` is not a mode: it is the request for a promotion.
    pub fn from_letter(letter: &[u8]) -> Option<Self> {
        match letter {
            [b'S' | b's'] => Some(Mode::Shared),
            [b'E' | b'e'] => Some(Mode::Exclusive),
            [b'X' | b'x'] => Some(Mode::Sole),
            [b'O' | b'o'] => Some(Mode::Optimistic),
            _ => None,
        }
    }

    fn is_exclusive(self) -> bool {
        matches!(self, Mode::Exclusive | Mode::Sole)
    }

    /// The collision matrix, between different owners.
    pub fn excludes(held: Mode, asked: Mode, rules: Rules) -> bool {
        match (held, asked) {
            (held, _) if held.is_exclusive() => true,
            (Mode::Shared, asked) => asked.is_exclusive(),
            (_, asked) => asked.is_exclusive() && rules.optimistic_blocks_exclusive,
        }
    }

    /// The collisions of an owner with itself: two X that overlap.
    pub fn excludes_own(held: Mode, asked: Mode) -> bool {
        held == Mode::Sole && asked == Mode::Sole
    }
}

/// Points that the published descriptions of the enqueue service leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether another owner's optimistic lock excludes E and X.
    pub optimistic_blocks_exclusive: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            optimistic_blocks_exclusive: true,
        }
    }
}

/// The parts of an owner that a request concerns: dialog (`Owner_1`), update task (`Owner_2`) or
/// both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    pub dialog: bool,
    pub update: bool,
}

impl Scope {
    pub const DIALOG: Scope = Scope {
        dialog: true,
        update: false,
    };
    pub const UPDATE: Scope = Scope {
        dialog: false,
        update: true,
    };
    pub const BOTH: Scope = Scope {
        dialog: true,
        update: true,
    };

    /// Reads 1 (dialog), 2 (update) or 3 (both).
    pub fn from_digit(digit: &[u8]) -> Option<Self> {
        match digit {
            b"1" => Some(Scope::DIALOG),
            b"2" => Some(Scope::UPDATE),
            b"3" => Some(Scope::BOTH),
            _ => None,
        }
    }
}
