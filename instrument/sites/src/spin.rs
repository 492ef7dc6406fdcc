//! Loops of x86-64 in which a thread does nothing but wait for a word of the memory to change.
//!
//! The code is followed from a sampled instruction on, through instructions that read, compare, exchange and
//! jump. If that leads back to where it began, it is a loop. It waits if it tells the CPU so (`pause`), or if it
//! does the very same in each turn: no register carries a value from one turn to the next. What it puts into the
//! memory must not depend on what it read there, nor where it puts it: else it is no attempt to take a lock, but one
//! to change data.
//!
//! A loop may look so many times and no more: it counts its turns in a register that nothing else comes from. That is
//! the same in each turn, if what is read decides whether there is a next one, and nothing is written.
//!
//! That code leads back does not say that it is ever run twice. Who reads data and then looks whether they were
//! changed meanwhile (a seqlock, the version of a node, the end of a lock-free queue) jumps back only then, and of its
//! parts a sample says not why it was there: who reads waits for the memory. So a loop that reads several words and
//! takes no lock waits only where each way back has a `pause`.

use std::collections::{BTreeMap, HashSet};

use iced_x86::{
    ConditionCode, CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Bytes before and behind a sample that are looked at: a loop that waits is short.
pub const AROUND: usize = 128;
/// How far it is traced where a value comes from: half as far at each step.
const TRACED: usize = 48;
/// What the instructions of a loop that waits belong to. Outside of these are vectors and floating point, and what
/// differs without a write by another thread: clocks, random numbers, transactions.
const UNDERSTOOD: [CpuidFeature; 20] = [
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL286,
    CpuidFeature::INTEL386,
    CpuidFeature::INTEL486,
    CpuidFeature::X64,
    CpuidFeature::CMOV,
    CpuidFeature::CX8,
    CpuidFeature::CMPXCHG16B,
    CpuidFeature::PAUSE,
    CpuidFeature::MULTIBYTENOP,
    CpuidFeature::CET_IBT,
    CpuidFeature::BMI1,
    CpuidFeature::BMI2,
    CpuidFeature::LZCNT,
    CpuidFeature::POPCNT,
    CpuidFeature::MOVBE,
    CpuidFeature::PREFETCHW,
    // For fences and prefetches; the others use vectors, by which they are told.
    CpuidFeature::SSE,
    CpuidFeature::SSE2,
];

/// A set of registers.
type Registers = u16;

/// An address as an instruction says it: base, index, scale, displacement, and segment.
type Word = (Register, Register, u32, u64, Register);

/// What an instruction does, as far as it matters in a loop that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Step {
    /// The registers that it writes, and those that their values come from, by an address, too. A part of a
    /// register counts as all of it, and what it leaves as it was as nothing.
    writes: Registers,
    from: Registers,
    reads_memory: bool,
    /// Where it reads, if not on the stack.
    word: Option<Word>,
    /// The registers whose values decide what it puts into the memory, where other threads see it.
    puts: Option<Registers>,
    pauses: bool,
    /// It keeps a value on the stack.
    spills: bool,
    /// It writes what another register has.
    copies: bool,
    /// It adds a constant to a register.
    counts: bool,
    /// Where it may go on: behind it, and where it jumps to.
    next: [Option<usize>; 2],
}

/// Whether an instruction at `at` of `code` is in a loop in which a thread waits for others.
pub fn waits_at(code: &[u8], at: usize) -> bool {
    let steps = followed(code, at);
    let whole = Turns::of(&steps, at, &|_| true);
    // A value that is computed anew from what was read is an attempt to change data, not to take a lock; and so is
    // one that is put where what was read says.
    let tries = |it: &usize| whole.changes_data(*it) || whole.moves(*it);
    let attempts: Vec<usize> = whole.inside.iter().copied().filter(tries).collect();
    let among = |it: usize| !attempts.contains(&it);
    let turns = match attempts.is_empty() {
        true => whole,
        false => Turns::of(&steps, at, &among),
    };
    if turns.words() < 2 || turns.all().any(|it| it.puts.is_some()) {
        return turns.only_waits();
    }
    let runs_on = Turns::of(&steps, at, &|it| among(it) && !steps[&it].pauses);
    runs_on.inside.is_empty()
}

/// The instructions that are reached, by where they begin. All of them, as a part of a loop may look like waiting:
/// the code that is looked at is their limit.
fn followed(code: &[u8], at: usize) -> BTreeMap<usize, Step> {
    let mut factory = InstructionInfoFactory::new();
    let mut found = BTreeMap::new();
    let mut next = vec![at];
    while let Some(place) = next.pop() {
        if found.contains_key(&place) {
            continue;
        }
        let Some(step) = decoded(code, place, &mut factory) else {
            continue;
        };
        next.extend(step.next.into_iter().flatten());
        found.insert(place, step);
    }
    found
}

/// The instructions on ways from one back to itself, and the ways between them; empty if there is none.
struct Turns<'a> {
    steps: &'a BTreeMap<usize, Step>,
    inside: Vec<usize>,
    edges: Vec<(usize, usize)>,
}

impl<'a> Turns<'a> {
    fn of(steps: &'a BTreeMap<usize, Step>, at: usize, among: &dyn Fn(usize) -> bool) -> Self {
        let mut edges: Vec<(usize, usize)> = steps
            .iter()
            .flat_map(|(place, step)| step.next.map(|next| Some((*place, next?))))
            .flatten()
            .filter(|(from, to)| steps.contains_key(to) && among(*from) && among(*to))
            .collect();
        let behind = reached(at, &edges);
        let reversed: Vec<(usize, usize)> = edges.iter().map(|it| (it.1, it.0)).collect();
        let before = reached(at, &reversed);
        let inside: Vec<usize> = behind
            .into_iter()
            .filter(|it| before.contains(it))
            .collect();
        edges.retain(|(from, to)| inside.contains(from) && inside.contains(to));
        Self {
            steps,
            inside,
            edges,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Step> {
        self.inside.iter().map(|it| &self.steps[it])
    }

    /// How many words are read, but those on the stack.
    fn words(&self) -> usize {
        let found: HashSet<Word> = self.all().filter_map(|it| it.word).collect();
        found.len()
    }

    /// Whether nothing is done here but to wait: it says so, or does the very same in each turn.
    fn only_waits(&self) -> bool {
        if self.all().any(|it| it.pauses) {
            return true;
        }
        let looks = self.all().any(|it| it.reads_memory);
        looks && !self.all().any(|it| it.spills) && !self.carry()
    }

    /// Whether an instruction puts something where a word says that is read in the same turn, as that of a list.
    fn moves(&self, place: usize) -> bool {
        let step = &self.steps[&place];
        let set = |it| self.set_by(place, it);
        step.puts.is_some()
            && registers(step.from)
                .flat_map(set)
                .any(|it| self.steps[&it].word.is_some())
    }

    /// Whether what an instruction puts into the memory may depend on what was read there, or on the turn.
    fn changes_data(&self, place: usize) -> bool {
        let step = &self.steps[&place];
        registers(step.puts.unwrap_or(0)).any(|it| !self.is_same(place, it, TRACED))
    }

    /// Whether a register has the same value in each turn when an instruction begins.
    fn is_same(&self, place: usize, register: u8, depth: usize) -> bool {
        depth > 0
            && self.set_by(place, register).into_iter().all(|it| {
                let step = &self.steps[&it];
                let mut from = registers(step.from);
                !step.reads_memory && from.all(|source| self.is_same(it, source, depth / 2))
            })
    }

    /// The instructions of the loop whose value a register may have when one begins.
    fn set_by(&self, place: usize, register: u8) -> Vec<usize> {
        let before = |place: usize| self.edges.iter().filter(move |it| it.1 == place);
        let mut seen: Vec<usize> = before(place).map(|it| it.0).collect();
        let (mut done, mut found) = (0, Vec::new());
        while let Some(one) = seen.get(done).copied() {
            done += 1;
            if registers(self.steps[&one].writes).any(|it| it == register) {
                found.push(one);
                continue;
            }
            for (earlier, _) in before(one) {
                if !seen.contains(earlier) {
                    seen.push(*earlier);
                }
            }
        }
        found
    }

    /// Whether nothing is written to the memory, and something that was read there is compared.
    fn looks_only(&self) -> bool {
        let has_read = |place: usize, register| {
            let mut set = self.set_by(place, register).into_iter();
            set.any(|it| self.steps[&it].reads_memory)
        };
        let compares = |place: &usize| {
            let step = &self.steps[place];
            let is_read = || registers(step.from).any(|it| has_read(*place, it));
            step.writes == 0 && (step.reads_memory || is_read())
        };
        !self.all().any(|it| it.puts.is_some()) && self.inside.iter().any(compares)
    }

    /// Whether an instruction counts turns: nothing else comes of its register, but that it is compared.
    fn counts_turns(&self, place: usize) -> bool {
        let counter = &self.steps[&place];
        let takes = |it: usize| {
            let mut from = registers(self.steps[&it].from & counter.writes);
            from.any(|register| self.set_by(it, register).contains(&place))
        };
        counter.counts
            && self.inside.iter().filter(|it| **it != place).all(|it| {
                let step = &self.steps[it];
                step.writes == 0 && !step.reads_memory || !takes(*it)
            })
    }

    /// Whether a register has in a turn what was computed from it in the one before. What is only copied stays
    /// the same.
    fn carry(&self) -> bool {
        let mut edges = Vec::new();
        for place in &self.inside {
            for source in registers(self.steps[place].from) {
                edges.extend(
                    self.set_by(*place, source)
                        .into_iter()
                        .map(|it| (*place, it)),
                );
            }
        }
        let is_limited = self.looks_only();
        let computes =
            |it: &&usize| !(self.steps[*it].copies || is_limited && self.counts_turns(**it));
        let mut computed = self.inside.iter().filter(computes);
        computed.any(|it| reached(*it, &edges).contains(it))
    }
}

/// What is reached from a place by at least one edge.
fn reached(at: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let next = |place: usize| edges.iter().filter(move |it| it.0 == place).map(|it| it.1);
    let mut found: Vec<usize> = Vec::new();
    let mut left = vec![at];
    while let Some(place) = left.pop() {
        for other in next(place) {
            if !found.contains(&other) {
                found.push(other);
                left.push(other);
            }
        }
    }
    found
}

/// The numbers of the registers in a set.
fn registers(set: Registers) -> impl Iterator<Item = u8> {
    (0..16).filter(move |it| set & 1 << it != 0)
}

/// The set of the register that one is, or is a part of. What is no general register counts as none.
fn whole(register: Register) -> Registers {
    match register.is_gpr() {
        true => 1 << register.full_register().number(),
        false => 0,
    }
}

/// What the instruction at a place does; none if it is none of those of which loops that wait consist.
fn decoded(code: &[u8], place: usize, factory: &mut InstructionInfoFactory) -> Option<Step> {
    let bytes = code.get(place..)?;
    let instruction = Decoder::with_ip(64, bytes, place as u64, DecoderOptions::NONE).decode();
    let next = next(&instruction)?;
    if !is_understood(&instruction) {
        return None;
    }
    let step = match exchange(&instruction) {
        Some(step) => step,
        None => plain(&instruction, factory.info(&instruction))?,
    };
    Some(Step { next, ..step })
}

/// Where an instruction may go on; none if it calls, returns, traps, or jumps to what a register says.
fn next(instruction: &Instruction) -> Option<[Option<usize>; 2]> {
    let behind = usize::try_from(instruction.next_ip()).ok();
    // Before the first byte, this is far behind the last one: nothing is found there.
    let target = usize::try_from(instruction.near_branch_target()).ok();
    match instruction.flow_control() {
        FlowControl::Next => Some([behind, None]),
        FlowControl::ConditionalBranch => Some([behind, target]),
        FlowControl::UnconditionalBranch => Some([target, None]),
        _ => None,
    }
}

fn is_understood(instruction: &Instruction) -> bool {
    let mut features = instruction.cpuid_features().iter();
    // Flags are not followed. A condition may depend on them, but no value: adc and rcl carry one on, and the
    // direction of a string is one.
    let computes_from_flags =
        instruction.rflags_read() != 0 && instruction.condition_code() == ConditionCode::None;
    features.all(|it| UNDERSTOOD.contains(it))
        && !instruction.is_stack_instruction()
        && !instruction.is_privileged()
        && !may_trap(instruction)
        && !computes_from_flags
}

/// A loop that divides also computes something: places in a ring, say.
fn may_trap(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv)
}

/// An instruction that locks are taken with: in one, it looks at a word and puts something there that does not
/// depend on what it saw. What it gets comes from the memory alone, also where it is told as read and written.
fn exchange(instruction: &Instruction) -> Option<Step> {
    if instruction.op0_kind() != OpKind::Memory {
        return None;
    }
    let given = whole(instruction.op1_register());
    let pair = whole(Register::RAX) | whole(Register::RDX);
    let (writes, puts) = match instruction.mnemonic() {
        Mnemonic::Xchg => (given, given),
        Mnemonic::Cmpxchg => (whole(Register::RAX), given | whole(Register::RAX)),
        Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => {
            (pair, pair | whole(Register::RBX) | whole(Register::RCX))
        }
        // The flag says what the bit was. One that is set already stays as it is.
        Mnemonic::Bts | Mnemonic::Btr if instruction.has_lock_prefix() => (0, given),
        _ => return None,
    };
    Some(Step {
        writes,
        from: whole(instruction.memory_base()) | whole(instruction.memory_index()),
        reads_memory: true,
        word: word(instruction),
        puts: Some(puts),
        ..Step::default()
    })
}

/// An instruction that changes only registers and the stack.
fn plain(instruction: &Instruction, info: &InstructionInfo) -> Option<Step> {
    let mut step = Step {
        pauses: instruction.mnemonic() == Mnemonic::Pause,
        copies: copies(instruction),
        counts: counts(instruction),
        ..Step::default()
    };
    for used in info.used_registers() {
        let (register, access) = (used.register(), used.access());
        // The base of what belongs to the thread: it stays the same.
        if register.is_segment_register() && access == OpAccess::Read {
            continue;
        }
        if !register.is_gpr() {
            return None;
        }
        if writes(access) {
            step.writes |= whole(register);
        }
        // What may be written only on a condition may be what it was.
        if access != OpAccess::Write {
            step.from |= whole(register);
        }
    }
    for used in info.used_memory() {
        step.reads_memory |= reads(used.access());
        step.word = step.word.or(word(instruction));
        if writes(used.access()) {
            let is_stack = matches!(used.base(), Register::RSP | Register::RBP);
            if !is_stack || instruction.has_lock_prefix() {
                return None;
            }
            step.spills = true;
        }
    }
    Some(step)
}

/// Where an instruction reads, if not on the stack.
fn word(instruction: &Instruction) -> Option<Word> {
    let base = instruction.memory_base();
    let is_stack = matches!(base, Register::RSP | Register::RBP);
    (!is_stack).then(|| {
        (
            base,
            instruction.memory_index(),
            instruction.memory_index_scale(),
            instruction.memory_displacement64(),
            instruction.memory_segment(),
        )
    })
}

/// Whether an instruction gives a register what another has, or a part of that: twice is the same as once.
fn copies(instruction: &Instruction) -> bool {
    let moves = matches!(
        instruction.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd
    );
    moves && instruction.op_kinds().all(|it| it == OpKind::Register)
}

/// Whether a constant is added to a register.
fn counts(instruction: &Instruction) -> bool {
    let is_constant = !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
    instruction.op0_kind() == OpKind::Register
        && match instruction.mnemonic() {
            Mnemonic::Add | Mnemonic::Sub => is_constant,
            Mnemonic::Inc | Mnemonic::Dec => true,
            _ => false,
        }
}

fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn writes(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let parts = text.split_whitespace();
        parts
            .map(|it| u8::from_str_radix(it, 16).unwrap())
            .collect()
    }

    /// Where a loop that waits is seen among the instructions of some code, which begin at these places.
    fn waiting(text: &str, places: &[usize]) -> Vec<usize> {
        let code = bytes(text);
        let waits = |at: &&usize| waits_at(&code, **at);
        places.iter().filter(waits).copied().collect()
    }

    #[test]
    fn loops_that_only_look_at_a_word_wait() {
        // mov called(%rip),%edx; cmp %ebp,%edx; jne: a ticket lock. Behind it, a copy.
        let ticket = "8b 15 ba 2d 00 00 39 ea 75 f6 48 89 d0 c3";
        assert_eq!(waiting(ticket, &[0, 6, 8, 10, 13]), [0, 6, 8]);
        // mov prepared(%rip),%eax; test %eax,%eax; je
        assert_eq!(
            waiting("8b 05 9a 2d 00 00 85 c0 74 f6", &[0, 6, 8]),
            [0, 6, 8]
        );
        // cmpl $0,(%rdi); je
        assert_eq!(waiting("83 3f 00 74 fb c3", &[0, 3]), [0, 3]);
        // Two tickets in one word, of which each turn takes the upper one: mov (%rdi),%eax; shr $16,%eax;
        // cmp %cx,%ax; jne
        let halves = "8b 07 c1 e8 10 66 39 c8 75 f6";
        assert_eq!(waiting(halves, &[0, 2, 5, 8]), [0, 2, 5, 8]);
    }

    #[test]
    fn loops_that_exchange_until_they_have_a_lock_wait() {
        // mov %r9d,%eax; xchg %al,latch(%rip); test; je out; movzbl latch(%rip),%eax; test; je 0; pause; jmp
        let latch = "44 89 c8 86 05 a7 2b 00 00 84 c0 74 13 0f 1f 00 0f b6 05 99 2b 00 00 84 c0 74 e5 f3 90 eb f1 90";
        assert_eq!(
            waiting(latch, &[0, 3, 9, 16, 23, 27, 29, 31]),
            [0, 3, 9, 16, 23, 27, 29]
        );
        // pause; xor %eax,%eax; lock cmpxchg %r9d,(%rip); jne; inc %rdi
        let swapped = "f3 90 31 c0 f0 44 0f b1 0d db 40 04 00 75 f1 48 ff c7";
        assert_eq!(waiting(swapped, &[0, 2, 4, 13, 15]), [0, 2, 4, 13]);
        // As Go has it, which copies a register to and fro: mov %rcx,%rax; mov %rax,%rcx; xor %eax,%eax;
        // lea (%rip),%rdx; mov $1,%esi; lock cmpxchg %esi,(%rdx); sete %dl; test %dl,%dl; je
        let of_go = "48 89 c8 48 89 c1 31 c0 48 8d 15 7e fe 0e 00 be 01 00 00 00 f0 0f b1 32 0f 94 c2 84 d2 74 e1";
        assert_eq!(waiting(of_go, &[0, 3, 6, 8, 15, 20, 24, 27, 29]).len(), 9);
    }

    #[test]
    fn a_delay_waits_if_it_tells_the_processor() {
        // pause; sub $1,%ecx; jne: as a runtime does before it looks again.
        assert_eq!(waiting("f3 90 83 e9 01 75 f9", &[0, 2, 5]), [0, 2, 5]);
        assert_eq!(waiting("83 e9 01 75 fb", &[0, 3]), []);
    }

    #[test]
    fn a_loop_that_looks_so_many_times_waits() {
        // As an I/O thread of Redis 7.0 looks for work: sub $1,%eax; je out; mov (%rbp),%rdx; test %rdx,%rdx; je 0
        let redis = "83 e8 01 74 09 48 8b 55 00 48 85 d2 74 f2";
        assert_eq!(waiting(redis, &[0, 3, 5, 9, 12]), [0, 3, 5, 9, 12]);
        // cmpl $0,(%rdi); jne out; inc %ecx; cmp $1000,%ecx; jne 0
        let counted = "83 3f 00 75 0a ff c1 81 f9 e8 03 00 00 75 f1";
        assert_eq!(waiting(counted, &[0, 3, 5, 7, 13]), [0, 3, 5, 7, 13]);
        // What was read is not looked at: mov (%rdi),%eax; sub $1,%ecx; jne 0
        assert_eq!(waiting("8b 07 83 e9 01 75 f9", &[0, 2, 5]), []);
        // What all add to while they look: lock add $1,(%rdi); sub $1,%ecx; je out; cmpl $0,(%rsi); je 0
        let adds = "f0 83 07 01 83 e9 01 74 05 83 3e 00 74 f2";
        assert_eq!(waiting(adds, &[0, 4, 7, 9, 12]), []);
        // The counter says where: add $4,%rcx; cmp %esi,(%rdi,%rcx); jne 0. Or it is copied: mov %ecx,%edx;
        // shl $3,%edx; add $1,%ecx; cmpl $0,(%rdi); je 0
        assert_eq!(waiting("48 83 c1 04 39 34 0f 75 f7", &[0, 4, 7]), []);
        let copied = "89 ca c1 e2 03 83 c1 01 83 3f 00 74 f3";
        assert_eq!(waiting(copied, &[0, 2, 5, 8, 11]), []);
        // How often is a sum: add (%rsi),%eax; sub $1,%ecx; je out; cmpl $0,(%rdi); je 0
        let sum = "03 06 83 e9 01 74 05 83 3f 00 74 f4";
        assert_eq!(waiting(sum, &[0, 2, 5, 7, 10]), []);
    }

    #[test]
    fn a_loop_is_seen_whole() {
        // mov (%rdi),%eax; test %eax,%eax; jne out; jmp. Much code is behind it.
        let mut short = bytes("8b 07 85 c0 75 02 eb f8");
        short.extend([0x90; 100]);
        assert!(waits_at(&short, 0));
        // A search whose next step comes after much code: mov (%rdi),%eax; test %eax,%eax; je 0; nop…;
        // add $4,%rdi; jmp 0
        let mut long = bytes("8b 07 85 c0 74 fa");
        long.extend([0x90; 60]);
        long.extend(bytes("48 83 c7 04 eb b8"));
        assert!(!waits_at(&long, 0));
    }

    #[test]
    fn attempts_to_change_data_do_not_wait() {
        // lea (%rax,%rdx),%r8; lock cmpxchg %r8,most(%rip); jne
        let most = "4c 8d 04 10 f0 4c 0f b1 05 93 2c 00 00 75 f1";
        assert_eq!(waiting(most, &[0, 4, 13]), []);
        // pause; lea (%rax,%rax,2),%rdx; add %r8,%rdx; lock cmpxchg %rdx,sum(%rip); je out; jmp
        let sum = "f3 90 48 8d 14 40 4c 01 c2 f0 48 0f b1 15 73 2d 00 00 74 d8 eb ea";
        assert_eq!(waiting(sum, &[0, 2, 6, 9, 18, 20]), []);
        // A reader that waits until no writer has it, and counts itself: mov (%rdi),%eax; test; js pause;
        // lea 1(%rax),%edx; lock cmpxchg %edx,(%rdi); jne 0; ret; pause; jmp 0. It waits in the first part.
        let reader = "8b 07 85 c0 78 0a 8d 50 01 f0 0f b1 17 75 f1 c3 f3 90 eb ec";
        assert_eq!(
            waiting(reader, &[0, 2, 4, 6, 9, 13, 16, 18]),
            [0, 2, 4, 16, 18]
        );
    }

    #[test]
    fn work_does_not_wait() {
        // imul; add; sub $1,%rdx; jne
        assert_eq!(
            waiting("48 0f af c7 48 01 f0 48 83 ea 01 75 f3", &[0, 4, 7, 11]),
            []
        );
        // Hashing without a multiplication: xor %rcx,%rax; shl $3,%rax; sub $1,%rdx; jne
        assert_eq!(
            waiting("48 31 c8 48 c1 e0 03 48 83 ea 01 75 f3", &[0, 3, 7, 11]),
            []
        );
        // Searching an array: cmp %esi,(%rdi); je out; add $4,%rdi; jmp
        assert_eq!(waiting("39 37 74 06 48 83 c7 04 eb f6", &[0, 2, 4, 8]), []);
        // Following a list: mov (%rax),%rax; test %rax,%rax; jne
        assert_eq!(waiting("48 8b 00 48 85 c0 75 f8", &[0, 3, 6]), []);
        // The end of a text: movzbl (%rdi,%rcx),%eax; inc %rcx; test %al,%al; jne
        assert_eq!(
            waiting("0f b6 04 0f 48 ff c1 84 c0 75 f5", &[0, 4, 7, 9]),
            []
        );
        // A variable on the stack that counts: mov -8(%rsp)... add $1 … mov back.
        assert_eq!(
            waiting(
                "48 8b 44 24 f8 48 83 c0 01 48 89 44 24 f8 39 c8 7c ee",
                &[0, 5, 9, 14, 16]
            ),
            []
        );
        // A counter that all add to: lock add $1,(%rdi); dec %ecx; jne
        assert_eq!(waiting("f0 83 07 01 ff c9 75 f8", &[0, 4, 6]), []);
        // Filling: mov %rax,(%rdi); jmp
        assert_eq!(waiting("48 89 07 eb fb", &[0, 3]), []);
    }

    #[test]
    fn a_read_that_is_checked_behind_does_not_wait() {
        // A seqlock: mov (%rdi),%eax; test $1,%al; jne 0; mov 8(%rdi),%rdx; mov (%rdi),%ecx; cmp %ecx,%eax; jne 0.
        let seqlock = "8b 07 a8 01 75 fa 48 8b 57 08 8b 0f 39 c8 75 f0 c3";
        assert_eq!(waiting(seqlock, &[0, 2, 4, 6, 10, 12, 14]), []);
        // The same with a pause for the writer: mov; test; je 10; pause; jmp 0; mov 8(%rdi); mov (%rdi); cmp; jne 0
        let pausing = "8b 07 a8 01 74 04 f3 90 eb f6 48 8b 57 08 8b 0f 39 c8 75 ec c3";
        assert_eq!(waiting(pausing, &[0, 2, 4, 6, 8, 10, 14, 16, 18]), [6, 8]);
        // A version that is even by itself: mov (%rdi),%eax; mov (%rsi,%rcx,8),%rdx; cmp (%rdi),%eax; jne 0
        let version = "8b 07 48 8b 14 ce 3b 07 75 f6 c3";
        assert_eq!(waiting(version, &[0, 2, 6, 8]), []);
        // Adding a node: mov 8(%rdi),%rcx; lea 8(%rcx),%r8; mov (%r8),%rax; cmp 8(%rdi),%rcx; jne 0; test %rax,%rax;
        // jne 0; lock cmpxchg %rdx,(%r8); jne 0
        let queue = "48 8b 4f 08 4c 8d 41 08 49 8b 00 48 3b 4f 08 75 ef 48 85 c0 75 ea \
                     f0 49 0f b1 10 75 e3 c3";
        let places = [0, 4, 8, 11, 15, 17, 20, 22, 27];
        assert_eq!(waiting(queue, &places), []);
        // A ring that is full says that it waits: mov (%rdi),%eax; cmp %eax,64(%rdi); jne out; pause; jmp 0
        let ring = "8b 07 39 47 40 75 04 f3 90 eb f5 c3";
        assert_eq!(waiting(ring, &[0, 2, 5, 7, 9]), [0, 2, 5, 7, 9]);
    }

    #[test]
    fn a_bit_that_is_set_until_it_was_clear_is_a_lock() {
        // lock btsl $0,(%rdi); jc. And lock btrl $3,(%rdi); jnc
        assert_eq!(waiting("f0 0f ba 2f 00 72 f9", &[0, 5]), [0, 5]);
        assert_eq!(waiting("f0 0f ba 37 03 73 f9", &[0, 5]), [0, 5]);
        // Looking for a free one: lock bts %eax,(%rdi); inc %eax; jnc
        assert_eq!(waiting("f0 0f ab 07 ff c0 73 f8", &[0, 4, 6]), []);
        // Without a lock it takes none, as two threads may both succeed: btsl $0,(%rdi); jc
        assert_eq!(waiting("0f ba 2f 00 72 fa", &[0, 4]), []);
        // What differs with what was there: lock btcl $0,(%rdi); jc. And lock orl $1,(%rdi); js
        assert_eq!(waiting("f0 0f ba 3f 00 72 f9", &[0, 5]), []);
        assert_eq!(waiting("f0 83 0f 01 78 fa", &[0, 4]), []);
    }

    #[test]
    fn an_exchange_of_what_was_read_moves_data() {
        // mov (%rsi),%eax; xchg %eax,(%rdi); test %eax,%eax; jne
        assert_eq!(waiting("8b 06 87 07 85 c0 75 f8", &[0, 2, 4, 6]), []);
        // A list is taken apart: xor %eax,%eax; xchg %rax,(%rdi); mov %rax,%rdi; test %rax,%rax; jne
        let list = "31 c0 48 87 07 48 89 c7 48 85 c0 75 f3";
        assert_eq!(waiting(list, &[0, 2, 5, 8, 11]), []);
    }

    #[test]
    fn a_ticket_is_taken_once_and_waited_for() {
        // mov $1,%eax; lock xadd %eax,(%rdi); cmp %eax,4(%rdi); je out; pause; jmp; ret
        let ticket = "b8 01 00 00 00 f0 0f c1 07 39 47 04 74 04 f3 90 eb f7 c3";
        assert_eq!(waiting(ticket, &[0, 5, 9, 12, 14, 16, 18]), [9, 12, 14, 16]);
        // The next number that all take: mov $1,%eax; lock xadd %eax,(%rdi); cmp %ecx,%eax; jb
        let number = "b8 01 00 00 00 f0 0f c1 07 39 c8 72 f3";
        assert_eq!(waiting(number, &[0, 5, 9, 11]), []);
    }

    #[test]
    fn two_words_are_exchanged_as_one_is() {
        // xor %eax,%eax; xor %edx,%edx; mov %r8,%rbx; mov %r9,%rcx; lock cmpxchg16b (%rdi); jne
        let latch = "31 c0 31 d2 4c 89 c3 4c 89 c9 f0 48 0f c7 0f 75 ef";
        assert_eq!(waiting(latch, &[0, 2, 4, 7, 10, 15]).len(), 6);
        // mov (%rdi),%rax; mov 8(%rdi),%rdx; lea 1(%rax),%rbx; mov %rdx,%rcx; lock cmpxchg16b (%rdi); jne
        let version = "48 8b 07 48 8b 57 08 48 8d 58 01 48 89 d1 f0 48 0f c7 0f 75 eb";
        assert_eq!(waiting(version, &[0, 3, 7, 11, 14, 19]), []);
        // Another word moved here: xor %eax,%eax; xor %edx,%edx; mov (%rsi),%rbx; mov %r9,%rcx; lock cmpxchg16b; jne
        let moved = "31 c0 31 d2 48 8b 1e 4c 89 c9 f0 48 0f c7 0f 75 ef";
        assert_eq!(waiting(moved, &[0, 2, 4, 7, 10, 15]), []);
        // The same with what was read as the upper one: xor %ebx,%ebx; mov %rdx,%rcx; lock cmpxchg16b; jne
        let upper = "31 db 48 89 d1 f0 48 0f c7 0f 75 f4";
        assert_eq!(waiting(upper, &[0, 2, 5, 10]), []);
    }

    #[test]
    fn parts_of_registers_are_followed() {
        // movzwl word(%rip),%eax; movzbl %al,%eax; cmp %r9b,%al; jne
        let narrow = "0f b7 05 02 00 00 00 0f b6 c0 44 38 c8 75 f1";
        assert_eq!(waiting(narrow, &[0, 7, 10, 13]), [0, 7, 10, 13]);
        // cmpb $0,flag(%rip); setne %al; test %al,%al; jne
        let flag = "80 3d 01 00 00 00 00 0f 95 c0 84 c0 75 f2";
        assert_eq!(waiting(flag, &[0, 7, 10, 12]), [0, 7, 10, 12]);
        // mov (%rdi),%ah; test %ah,%ah; je. But inc %ah; cmp %ah,(%rdi); jne
        assert_eq!(waiting("8a 27 84 e4 74 fa", &[0, 2, 4]), [0, 2, 4]);
        assert_eq!(waiting("fe c4 38 27 75 fa", &[0, 2, 4]), []);
        // To widen twice is to widen once: movzbl %al,%eax; cmp %eax,(%rdi); jne
        assert_eq!(waiting("0f b6 c0 39 07 75 f9", &[0, 3, 5]), [0, 3, 5]);
        // Two values in turn: xchg %eax,%edx; cmp %eax,(%rdi); jne
        assert_eq!(waiting("92 39 07 75 fb", &[0, 1, 3]), []);
        // Two halves of a word: mov (%rdi),%eax; rorx $16,%eax,%edx; cmp %dx,%ax; jne
        let halves = "8b 07 c4 e3 7b f0 d0 10 66 39 d0 75 f3";
        assert_eq!(waiting(halves, &[0, 2, 8, 11]), [0, 2, 8, 11]);
    }

    #[test]
    fn a_condition_may_keep_what_a_register_had() {
        // mov (%rdi),%rax; test %rax,%rax; cmove %rsi,%rax; cmp %rsi,%rax; je
        let chosen = "48 8b 07 48 85 c0 48 0f 44 c6 48 39 f0 74 f1";
        assert_eq!(waiting(chosen, &[0, 3, 6, 10, 13]), [0, 3, 6, 10, 13]);
        // The greatest of an array: cmp (%rdx),%rax; cmovb (%rdx),%rax; mov %rax,%rdx; jne
        let greatest = "48 3b 02 48 0f 42 02 48 89 c2 75 f4";
        assert_eq!(waiting(greatest, &[0, 3, 7, 10]), []);
    }

    #[test]
    fn operands_are_found_in_every_way_of_addressing() {
        // cmpl $0,(%edi); je. And cmpl $0,%fs:-8; je
        assert_eq!(waiting("67 83 3f 00 74 fa", &[0, 4]), [0, 4]);
        assert_eq!(waiting("64 83 3c 25 f8 ff ff ff 00 74 f5", &[0, 9]), [0, 9]);
        // mov (%rdi),%eax; mfence; test %eax,%eax; je
        assert_eq!(
            waiting("8b 07 0f ae f0 85 c0 74 f7", &[0, 2, 5, 7]).len(),
            4
        );
        // A bit of a word: mov (%rdi),%eax; shr %cl,%eax; test $1,%al; je
        assert_eq!(waiting("8b 07 d3 e8 a8 01 74 f8", &[0, 2, 4, 6]).len(), 4);
    }

    #[test]
    fn the_stack_keeps_what_is_counted() {
        // As it is compiled without optimisation: pause; addl $1,-4(%rbp); cmpl $99,-4(%rbp); jle
        let delay = "f3 90 83 45 fc 01 83 7d fc 63 7e f4";
        assert_eq!(waiting(delay, &[0, 2, 6, 10]), [0, 2, 6, 10]);
        assert_eq!(waiting("83 45 fc 01 83 7d fc 63 7e f6", &[0, 4, 8]), []);
        // mov -8(%rbp),%eax; mov (%rax),%eax; test %eax,%eax; je
        let looked = "8b 45 f8 8b 00 85 c0 74 f7";
        assert_eq!(waiting(looked, &[0, 3, 5, 7]), [0, 3, 5, 7]);
        // pause; loop
        assert_eq!(waiting("f3 90 e2 fc", &[0, 2]), [0, 2]);
    }

    #[test]
    fn what_is_not_followed_does_not_wait() {
        // Flags of the turn before, as a value: mov %r8,%rax; adc $0,%rax; cmp (%rdi),%rax; jne
        let carried = "4c 89 c0 48 83 d0 00 48 3b 07 75 f4";
        assert_eq!(waiting(carried, &[0, 3, 7, 10]), []);
        // Clocks and random numbers differ by themselves: rdtsc, or rdrand %eax; cmp (%rdi),%eax; jb
        assert_eq!(waiting("0f 31 3b 07 72 fa", &[0, 2, 4]), []);
        assert_eq!(waiting("0f c7 f0 3b 07 72 f9", &[0, 3, 5]), []);
        // Strings: mov (%rsi),%al; rep movsb; jne. And lods (%rsi),%al; test %al,%al; jne
        assert_eq!(waiting("8a 06 f3 a4 75 fa", &[0, 2, 4]), []);
        assert_eq!(waiting("ac 84 c0 75 fb", &[0, 1, 3]), []);
        // Vectors: movdqa (%rdi),%xmm0; ptest %xmm0,%xmm0; je
        let vector = "66 0f 6f 07 66 0f 38 17 c0 74 f5";
        assert_eq!(waiting(vector, &[0, 4, 9]), []);
        // pause; push %rax; jmp
        assert_eq!(waiting("f3 90 50 eb fb", &[0, 2, 3]), []);
        // A division may trap: xor %edx,%edx; mov %esi,%eax; div %ecx; cmp %edx,(%rdi); jne
        let place = "31 d2 89 f0 f7 f1 39 17 75 f6";
        assert_eq!(waiting(place, &[0, 2, 4, 6, 8]), []);
        // A system call, and a call of what a register says: mov (%rdi),%eax; syscall, or call *%rax; jmp
        assert_eq!(waiting("8b 07 0f 05 eb fa", &[0, 2, 4]), []);
        assert_eq!(waiting("8b 07 ff d0 eb fa", &[0, 2, 4]), []);
    }

    #[test]
    fn any_bytes_are_understood_or_not() {
        let mut seed = 7_u64;
        for _ in 0..200_000 {
            let code: Vec<u8> = (0..24)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 56) as u8
                })
                .collect();
            waits_at(&code, 0);
            waits_at(&code, 24);
        }
        waits_at(&[], 0);
    }
}
