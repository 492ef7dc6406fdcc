// Checker tells whether a history of operations on registers is linearizable: whether each operation
// can have happened at one moment between its call and its return (Herlihy and Wing, TOPLAS 1990).
// With whole transactions as operations, that is strict serialisability. The search is that of
// porcupine (Lowe, "Testing for linearizability", 2017).
//
// Usage: checker [-timeout 60s] [-html FILE] HISTORY
//
// Exit codes: 0 accepted, 1 rejected, 2 wrong usage or no history, 3 undecided in the time.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	accepted  = 0
	rejected  = 1
	unusable  = 2
	undecided = 3
)

// How many operations on each side of the place where the search ends are shown.
const shown = 6

func main() {
	timeout := flag.Duration("timeout", time.Minute, "how long each part of the history is searched")
	page := flag.String("html", "", "a file for a drawing of the first part that is rejected")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: checker [-timeout 60s] [-html FILE] HISTORY")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(unusable)
	}
	os.Exit(check(flag.Arg(0), *timeout, *page))
}

func check(path string, timeout time.Duration, page string) int {
	file, err := os.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "checker:", err)
		return unusable
	}
	defer file.Close()
	history, err := readHistory(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "checker: %s is no history: %v\n", path, err)
		return unusable
	}
	parts := history.parts()
	outcome := accepted
	for _, it := range parts {
		switch porcupine.CheckOperationsTimeout(modelOf(it), it.calls(), timeout) {
		case porcupine.Illegal:
			explain(it, timeout, page)
			return rejected
		case porcupine.Unknown:
			fmt.Printf("undecided in %v: %s\n", timeout, describe(it))
			outcome = undecided
		}
	}
	if outcome == accepted {
		fmt.Printf("accepted: %d operations on %d registers, in %d parts\n",
			len(history.operations), len(history.registers), len(parts))
	}
	return outcome
}

func describe(it part) string {
	names := it.registers
	more := ""
	if len(names) > shown {
		names, more = names[:shown], fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return fmt.Sprintf("%d operations on %s%s", len(it.operations), strings.Join(names, ", "), more)
}

// explain prints the longest order that the search has found, and the operations that follow it and
// fit nowhere.
func explain(it part, timeout time.Duration, page string) {
	fmt.Printf("rejected: no order explains %s\n", describe(it))
	model := modelOf(it)
	_, info := porcupine.CheckOperationsVerbose(model, it.calls(), timeout)
	var longest []int
	for _, order := range info.PartialLinearizations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	fmt.Printf("the longest order has %d of them; it ends with\n", len(longest))
	isPlaced := map[int]bool{}
	for at, number := range longest {
		isPlaced[number] = true
		if at >= len(longest)-shown {
			show(it.operations[number])
		}
	}
	var left []operation
	for number := range it.operations {
		if !isPlaced[number] {
			left = append(left, it.operations[number])
		}
	}
	sort.Slice(left, func(i, j int) bool { return left[i].call < left[j].call })
	fmt.Println("and none of these can follow")
	for at, operation := range left {
		if at < shown {
			show(operation)
		}
	}
	if page == "" {
		return
	}
	if err := porcupine.VisualizePath(model, info, page); err != nil {
		fmt.Fprintln(os.Stderr, "checker:", err)
	} else {
		fmt.Println("it is drawn in", page)
	}
}

func show(it operation) {
	until := "?"
	if it.finish != 1<<63-1 {
		until = fmt.Sprint(it.finish)
	}
	fmt.Printf("  client %d, %d to %s: %s\n", it.client, it.call, until, it.what)
}
