package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
)

// A line of a history file: one operation of a client. Values of registers are texts; null is the
// value of a register that was never set.
type line struct {
	Client int    `json:"client"`
	Call   int64  `json:"call"`
	Return *int64 `json:"return"` // absent or null: the operation may take effect at any later time
	What   string `json:"what"`
	Ways   []struct {
		Is   map[string]*string `json:"is"`
		Isnt map[string]*string `json:"isnt"`
		Set  map[string]*string `json:"set"`
	} `json:"ways"`
}

// A cell is a register and a value, both by number.
type cell struct {
	register int
	value    uint32
}

// A way in which an operation can have gone: what the registers were and were not before it, and
// what it has set.
type way struct {
	is, isnt, set []cell
}

type operation struct {
	client       int
	call, finish int64
	what         string
	ways         []way
}

// A part of a history: operations that have no register in common with those of other parts.
type part struct {
	registers  []string
	operations []operation
}

// A history, as it is read. Value 0 is null.
type history struct {
	registers  []string
	numbers    map[string]int
	values     map[string]uint32
	operations []operation
}

func readHistory(from io.Reader) (*history, error) {
	found := &history{numbers: map[string]int{}, values: map[string]uint32{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<26)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := found.add(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(found.operations) == 0 {
		return nil, fmt.Errorf("no operation is in it")
	}
	return found, nil
}

func (h *history) add(text []byte) error {
	var read line
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return err
	}
	added := operation{client: read.Client, call: read.Call, finish: math.MaxInt64, what: read.What}
	if read.Return != nil {
		added.finish = *read.Return
	}
	if added.finish < added.call {
		return fmt.Errorf("%q returns before it is called", read.What)
	}
	if len(read.Ways) == 0 {
		return fmt.Errorf("%q has no way in which it can have gone", read.What)
	}
	for _, it := range read.Ways {
		added.ways = append(added.ways, way{h.cells(it.Is), h.cells(it.Isnt), h.cells(it.Set)})
	}
	h.operations = append(h.operations, added)
	return nil
}

func (h *history) cells(values map[string]*string) []cell {
	cells := make([]cell, 0, len(values))
	for register, value := range values {
		cells = append(cells, cell{h.register(register), h.value(value)})
	}
	sort.Slice(cells, func(i, j int) bool { return cells[i].register < cells[j].register })
	return cells
}

func (h *history) register(name string) int {
	number, known := h.numbers[name]
	if !known {
		number = len(h.registers)
		h.numbers[name] = number
		h.registers = append(h.registers, name)
	}
	return number
}

func (h *history) value(text *string) uint32 {
	if text == nil {
		return 0
	}
	number, known := h.values[*text]
	if !known {
		number = uint32(len(h.values) + 1)
		h.values[*text] = number
	}
	return number
}

// parts splits the history where no operation concerns registers of both sides: such parts are
// linearizable together if and only if each is. An operation without registers is in no part.
func (h *history) parts() []part {
	group := make([]int, len(h.registers))
	for register := range group {
		group[register] = register
	}
	root := func(register int) int {
		for group[register] != register {
			group[register] = group[group[register]]
			register = group[register]
		}
		return register
	}
	first := make([]int, len(h.operations))
	for at, it := range h.operations {
		first[at] = -1
		for _, cell := range it.cells() {
			if first[at] < 0 {
				first[at] = cell.register
			}
			group[root(cell.register)] = root(first[at])
		}
	}
	numbers := map[int]int{}
	var parts []part
	local := make([]int, len(h.registers))
	for register, name := range h.registers {
		number, known := numbers[root(register)]
		if !known {
			number = len(parts)
			numbers[root(register)] = number
			parts = append(parts, part{})
		}
		local[register] = len(parts[number].registers)
		parts[number].registers = append(parts[number].registers, name)
	}
	for at, it := range h.operations {
		if first[at] >= 0 {
			it.renumber(local)
			of := &parts[numbers[root(first[at])]]
			of.operations = append(of.operations, it)
		}
	}
	return parts
}

func (o *operation) cells() []cell {
	var all []cell
	for _, it := range o.ways {
		all = append(append(append(all, it.is...), it.isnt...), it.set...)
	}
	return all
}

func (o *operation) renumber(to []int) {
	for _, it := range o.ways {
		for _, cells := range [][]cell{it.is, it.isnt, it.set} {
			for at := range cells {
				cells[at].register = to[cells[at].register]
			}
		}
	}
}
