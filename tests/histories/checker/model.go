package main

import (
	"encoding/binary"
	"hash/maphash"
	"strings"

	"github.com/anishathalye/porcupine"
)

const valueBytes = 4

var seed = maphash.MakeSeed()

// modelOf is the sequential specification of a part: registers, of which an operation tests and sets
// some at one moment, in one of its ways. A state is a text with the number of each register's value,
// so that states are compared by ==.
func modelOf(it part) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []interface{} {
			return []interface{}{strings.Repeat("\x00", valueBytes*len(it.registers))}
		},
		Step: func(state, input, _ interface{}) []interface{} {
			var after []interface{}
			for _, way := range input.(*operation).ways {
				if next, possible := way.from(state.(string)); possible {
					after = append(after, next)
				}
			}
			return after
		},
		Hash: func(state interface{}) uint64 {
			var hash maphash.Hash
			hash.SetSeed(seed)
			hash.WriteString(state.(string))
			return hash.Sum64()
		},
		DescribeOperation: func(input, _ interface{}) string { return input.(*operation).what },
		DescribeState:     func(interface{}) string { return "" },
	}
	return model.ToModel()
}

func valueAt(state string, register int) uint32 {
	return binary.LittleEndian.Uint32([]byte(state[valueBytes*register : valueBytes*(register+1)]))
}

// from is the state after an operation that has gone this way, if it can have.
func (w way) from(state string) (string, bool) {
	for _, it := range w.is {
		if valueAt(state, it.register) != it.value {
			return "", false
		}
	}
	for _, it := range w.isnt {
		if valueAt(state, it.register) == it.value {
			return "", false
		}
	}
	if len(w.set) == 0 {
		return state, true
	}
	next := []byte(state)
	for _, it := range w.set {
		binary.LittleEndian.PutUint32(next[valueBytes*it.register:], it.value)
	}
	return string(next), true
}

func (it part) calls() []porcupine.Operation {
	calls := make([]porcupine.Operation, len(it.operations))
	for at := range it.operations {
		operation := &it.operations[at]
		calls[at] = porcupine.Operation{
			ClientId: operation.client,
			Input:    operation,
			Call:     operation.call,
			Return:   operation.finish,
		}
	}
	return calls
}
