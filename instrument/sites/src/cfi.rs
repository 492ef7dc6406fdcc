//! Call frame information: how the registers of a caller are found from those of a function.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, Evaluation,
    EvaluationResult, FrameDescriptionEntry, LittleEndian, RegisterRule, UnwindContext,
    UnwindExpression, UnwindSection, Value,
};

/// Registers of x86-64 that call frame information names: 16 is the return address.
pub const REGISTERS: usize = 17;
pub const FRAME_POINTER: usize = 6;
pub const STACK_POINTER: usize = 7;
pub const RETURN_ADDRESS: usize = 16;
/// Those that a function leaves as they were, unless a rule says otherwise: rbx, rbp, r12 to r15.
const PRESERVED: [usize; 6] = [3, FRAME_POINTER, 12, 13, 14, 15];
/// Entries that begin before an address and may be for it: only those of code that is not there overlap.
const NEAR_ENTRIES: usize = 16;
/// Operations of an expression, so that it ends.
const OPERATIONS_MAX: u32 = 1000;

pub type Registers = [Option<u64>; REGISTERS];
type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A section, with the address at which it is loaded.
#[derive(Debug, Default)]
pub struct Section {
    pub address: u64,
    pub bytes: Vec<u8>,
}

/// The call frame information of a file.
#[derive(Debug)]
pub struct Frames {
    sections: Sections,
    rows: RefCell<HashMap<u64, Option<Rc<Row>>>>,
    /// Of `.eh_frame` without a table, and of `.debug_frame`.
    eh_index: OnceCell<Index>,
    debug_index: OnceCell<Index>,
}

/// Where it stands.
#[derive(Debug, Default)]
pub struct Sections {
    pub text_address: u64,
    pub got_address: u64,
    pub eh_frame: Option<Section>,
    pub eh_frame_hdr: Option<Section>,
    pub debug_frame: Option<Section>,
}

/// How the caller's registers are found at one address of a function.
#[derive(Debug)]
pub struct Row {
    /// Where the function begins.
    pub start: u64,
    /// The frame was made by the kernel, for a signal: the address in the frame above is no return address.
    pub is_signal: bool,
    frame: Rule,
    rules: [Rule; REGISTERS],
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    /// It is as it was.
    Same,
    Unknown,
    /// There is no caller, if it is the rule of the return address.
    Undefined,
    /// The sum of a register and a number.
    Register(usize, i64),
    /// At so many bytes from the frame's address, or that address itself.
    At(i64),
    Is(i64),
    AtExpression(Vec<u8>),
    Expression(Vec<u8>),
    Constant(u64),
}

/// What memory holds, where that is known.
pub trait Memory {
    fn word(&self, address: u64) -> Option<u64>;
}

/// What a row says of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    Found(Box<Registers>),
    /// This is the first function of the thread.
    None,
    /// The frame's address is found by a register that is not known.
    UnknownFrame,
    /// A word is beyond what was copied of the stack.
    UnknownWord,
}

impl Row {
    /// The registers of the caller.
    pub fn caller(&self, registers: &Registers, memory: &impl Memory) -> Caller {
        match evaluated(&self.frame, registers, memory, None) {
            Some(frame) => self.caller_of(frame, registers, memory),
            None => Caller::UnknownFrame,
        }
    }

    /// The registers of the caller, by the frame's address (the stack pointer before the call).
    pub fn caller_of(&self, frame: u64, registers: &Registers, memory: &impl Memory) -> Caller {
        if self.rules[RETURN_ADDRESS] == Rule::Undefined {
            return Caller::None;
        }
        let mut found: Registers = std::array::from_fn(|register| {
            let rule = &self.rules[register];
            match rule {
                Rule::Same => registers[register],
                _ => evaluated(rule, registers, memory, Some(frame)),
            }
        });
        if self.rules[STACK_POINTER] == Rule::Unknown {
            found[STACK_POINTER] = Some(frame);
        }
        match found[RETURN_ADDRESS] {
            None => Caller::UnknownWord,
            Some(0) => Caller::None,
            // A stack grows downwards: a frame that is not above its callee's is none.
            Some(_) if found[STACK_POINTER] <= registers[STACK_POINTER] => Caller::UnknownWord,
            Some(_) => Caller::Found(Box::new(found)),
        }
    }
}

fn evaluated(
    rule: &Rule,
    registers: &Registers,
    memory: &impl Memory,
    frame: Option<u64>,
) -> Option<u64> {
    match rule {
        Rule::Same | Rule::Unknown | Rule::Undefined => None,
        Rule::Register(number, offset) => Some(registers[*number]?.wrapping_add_signed(*offset)),
        Rule::At(offset) => memory.word(frame?.wrapping_add_signed(*offset)),
        Rule::Is(offset) => Some(frame?.wrapping_add_signed(*offset)),
        Rule::AtExpression(bytes) => memory.word(calculated(bytes, registers, memory, frame)?),
        Rule::Expression(bytes) => calculated(bytes, registers, memory, frame),
        Rule::Constant(value) => Some(*value),
    }
}

/// The value of a DWARF expression.
fn calculated(
    bytes: &[u8],
    registers: &Registers,
    memory: &impl Memory,
    initial: Option<u64>,
) -> Option<u64> {
    let encoding = gimli::Encoding {
        address_size: 8,
        format: gimli::Format::Dwarf32,
        version: 4,
    };
    let mut evaluation = Evaluation::new(EndianSlice::new(bytes, LittleEndian), encoding);
    evaluation.set_max_iterations(OPERATIONS_MAX);
    if let Some(value) = initial {
        evaluation.set_initial_value(value);
    }
    let mut state = evaluation.evaluate().ok()?;
    loop {
        let value = match state {
            EvaluationResult::Complete => {
                return match evaluation.value_result()? {
                    Value::Generic(value) => Some(value),
                    _ => None,
                };
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = (*registers.get(usize::from(register.0))?)?;
                state = evaluation
                    .resume_with_register(Value::Generic(value))
                    .ok()?;
                continue;
            }
            EvaluationResult::RequiresMemory {
                address, size: 8, ..
            } => memory.word(address)?,
            _ => return None,
        };
        state = evaluation.resume_with_memory(Value::Generic(value)).ok()?;
    }
}

impl Frames {
    pub fn new(sections: Sections) -> Self {
        Self {
            sections,
            rows: RefCell::default(),
            eh_index: OnceCell::new(),
            debug_index: OnceCell::new(),
        }
    }

    /// The row of an address of the file; none if no information covers it.
    pub fn row(&self, address: u64) -> Option<Rc<Row>> {
        let known = self.rows.borrow().get(&address).cloned();
        known.unwrap_or_else(|| {
            let row = self.find(address).map(Rc::new);
            self.rows.borrow_mut().insert(address, row.clone());
            row
        })
    }

    fn find(&self, address: u64) -> Option<Row> {
        self.in_eh_frame(address)
            .or_else(|| self.in_debug_frame(address))
    }

    fn bases(&self) -> BaseAddresses {
        let mut bases = BaseAddresses::default()
            .set_text(self.sections.text_address)
            .set_got(self.sections.got_address);
        if let Some(section) = &self.sections.eh_frame {
            bases = bases.set_eh_frame(section.address);
        }
        if let Some(section) = &self.sections.eh_frame_hdr {
            bases = bases.set_eh_frame_hdr(section.address);
        }
        bases
    }

    fn in_eh_frame(&self, address: u64) -> Option<Row> {
        let bases = self.bases();
        let section = EhFrame::new(&self.sections.eh_frame.as_ref()?.bytes, LittleEndian);
        let header = self.sections.eh_frame_hdr.as_ref().and_then(|header| {
            EhFrameHdr::new(&header.bytes, LittleEndian)
                .parse(&bases, 8)
                .ok()
        });
        let indexed = header.as_ref().and_then(|header| {
            let table = header.table()?;
            table
                .fde_for_address(&section, &bases, address, EhFrame::cie_from_offset)
                .ok()
        });
        let entry = match indexed {
            Some(entry) => entry,
            // The table lists every function, where there is one.
            None if header.as_ref().is_some_and(|it| it.table().is_some()) => return None,
            None => {
                let index = self.eh_index.get_or_init(|| Index::of(&section, &bases));
                index.entry(&section, &bases, address)?
            }
        };
        row(&section, &entry, &bases, address)
    }

    fn in_debug_frame(&self, address: u64) -> Option<Row> {
        let bases = self.bases();
        let bytes = &self.sections.debug_frame.as_ref()?.bytes;
        let mut section = DebugFrame::new(bytes, LittleEndian);
        section.set_address_size(8);
        let index = self.debug_index.get_or_init(|| Index::of(&section, &bases));
        let entry = index.entry(&section, &bases, address)?;
        row(&section, &entry, &bases, address)
    }
}

/// Where the entries of a section stand: it is read once, and not for each address.
#[derive(Debug)]
struct Index {
    /// The addresses that each is for, from the first to before the last, and its place in the section.
    entries: Vec<(u64, u64, usize)>,
}

impl Index {
    fn of<'a, S: UnwindSection<Slice<'a>>>(section: &S, bases: &BaseAddresses) -> Self {
        let mut found = Vec::new();
        let mut entries = section.entries(bases);
        // Where one is not understood, nothing behind it is.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Ok(entry) = partial.parse(S::cie_from_offset) else {
                break;
            };
            found.push((entry.initial_address(), entry.end_address(), entry.offset()));
        }
        found.sort_unstable();
        Self { entries: found }
    }

    fn entry<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        bases: &BaseAddresses,
        address: u64,
    ) -> Option<FrameDescriptionEntry<Slice<'a>>> {
        let after = self.entries.partition_point(|it| it.0 <= address);
        let mut near = self.entries[..after].iter().rev().take(NEAR_ENTRIES);
        let (_, _, place) = near.find(|it| address < it.1)?;
        let found = section.fde_from_offset(bases, S::Offset::from(*place), S::cie_from_offset);
        found.ok()
    }
}

fn row<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    entry: &FrameDescriptionEntry<Slice<'a>>,
    bases: &BaseAddresses,
    address: u64,
) -> Option<Row> {
    let mut context = UnwindContext::new();
    let found = entry
        .unwind_info_for_address(section, bases, &mut context, address)
        .ok()?;
    let bytes = |expression: &UnwindExpression<usize>| -> Option<Vec<u8>> {
        let found: gimli::Expression<Slice<'a>> = expression.get(section).ok()?;
        Some(found.0.slice().to_vec())
    };
    let frame = match found.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            Rule::Register(number(*register)?, *offset)
        }
        CfaRule::Expression(expression) => Rule::Expression(bytes(expression)?),
    };
    let rules = std::array::from_fn(|register| {
        let said = found.register(gimli::Register(register as u16));
        let Some(said) = said else {
            return match PRESERVED.contains(&register) {
                true => Rule::Same,
                false => Rule::Unknown,
            };
        };
        match said {
            RegisterRule::Undefined => Rule::Undefined,
            RegisterRule::SameValue => Rule::Same,
            RegisterRule::Offset(offset) => Rule::At(offset),
            RegisterRule::ValOffset(offset) => Rule::Is(offset),
            RegisterRule::Register(other) => {
                number(other).map_or(Rule::Unknown, |other| Rule::Register(other, 0))
            }
            RegisterRule::Expression(expression) => {
                bytes(&expression).map_or(Rule::Unknown, Rule::AtExpression)
            }
            RegisterRule::ValExpression(expression) => {
                bytes(&expression).map_or(Rule::Unknown, Rule::Expression)
            }
            RegisterRule::Constant(value) => Rule::Constant(value),
            RegisterRule::Architectural => Rule::Unknown,
        }
    });
    Some(Row {
        start: entry.initial_address(),
        is_signal: entry.is_signal_trampoline(),
        frame,
        rules,
    })
}

fn number(register: gimli::Register) -> Option<usize> {
    let number = usize::from(register.0);
    (number < REGISTERS).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words(HashMap<u64, u64>);

    impl Memory for Words {
        fn word(&self, address: u64) -> Option<u64> {
            self.0.get(&address).copied()
        }
    }

    fn row_of(frame: Rule) -> Row {
        let mut rules: [Rule; REGISTERS] =
            std::array::from_fn(|register| match PRESERVED.contains(&register) {
                true => Rule::Same,
                false => Rule::Unknown,
            });
        rules[RETURN_ADDRESS] = Rule::At(-8);
        Row {
            start: 0x100,
            is_signal: false,
            frame,
            rules,
        }
    }

    #[test]
    fn a_frame_by_the_stack_pointer_needs_no_other_register() {
        let row = row_of(Rule::Register(STACK_POINTER, 24));
        let mut registers = [None; REGISTERS];
        registers[STACK_POINTER] = Some(0x7000);
        let memory = Words(HashMap::from([(0x7010, 0x1234)]));
        let Caller::Found(caller) = row.caller(&registers, &memory) else {
            panic!()
        };
        assert_eq!(caller[RETURN_ADDRESS], Some(0x1234));
        assert_eq!(caller[STACK_POINTER], Some(0x7018));
        assert_eq!(caller[FRAME_POINTER], None);
        let nothing = Words(HashMap::new());
        assert_eq!(row.caller(&registers, &nothing), Caller::UnknownWord);
    }

    #[test]
    fn a_frame_by_an_unknown_register_is_found_by_its_address() {
        let mut row = row_of(Rule::Register(FRAME_POINTER, 16));
        row.rules[FRAME_POINTER] = Rule::At(-16);
        let mut registers = [None; REGISTERS];
        registers[STACK_POINTER] = Some(0x7000);
        let memory = Words(HashMap::from([(0x7038, 0x1234), (0x7030, 0x7080)]));
        assert_eq!(row.caller(&registers, &memory), Caller::UnknownFrame);
        let Caller::Found(caller) = row.caller_of(0x7040, &registers, &memory) else {
            panic!()
        };
        assert_eq!(caller[FRAME_POINTER], Some(0x7080));
        assert_eq!(caller[RETURN_ADDRESS], Some(0x1234));
    }

    #[test]
    fn the_first_function_has_no_caller_and_a_frame_below_is_none() {
        let mut first = row_of(Rule::Register(STACK_POINTER, 8));
        first.rules[RETURN_ADDRESS] = Rule::Undefined;
        let mut registers = [None; REGISTERS];
        registers[STACK_POINTER] = Some(0x7000);
        let memory = Words(HashMap::from([(0x6ff0, 0x1234)]));
        assert_eq!(first.caller(&registers, &memory), Caller::None);
        let below = row_of(Rule::Register(STACK_POINTER, -8));
        assert_eq!(below.caller(&registers, &memory), Caller::UnknownWord);
    }

    #[test]
    fn an_expression_reads_registers_and_memory_and_always_ends() {
        let mut registers = [None; REGISTERS];
        registers[STACK_POINTER] = Some(0x7000);
        let memory = Words(HashMap::from([(0x7008, 77)]));
        // DW_OP_breg7 8; DW_OP_deref; DW_OP_lit1; DW_OP_plus
        let bytes = [0x77, 8, 0x06, 0x31, 0x22];
        assert_eq!(calculated(&bytes, &registers, &memory, None), Some(78));
        // DW_OP_breg6 0: not known.
        assert_eq!(calculated(&[0x76, 0], &registers, &memory, None), None);
        // DW_OP_skip -3: for ever.
        assert_eq!(
            calculated(&[0x2f, 0xfd, 0xff], &registers, &memory, None),
            None
        );
    }
}
