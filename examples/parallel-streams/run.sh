#!/usr/bin/env bash
# Question:     How does a parallel stream of Java scale with the threads of its pool?
# Needs:        a JDK (java, javac)
# Right answer: As many threads as there are CPUs, or more: the stream needs nothing but CPU time.
. "$(dirname "$0")/../common.sh"
needs javac default-jdk-headless
needs java default-jdk-headless

# Compiled once; java Primes.java would compile it in every trial.
javac -d . "$HERE/Primes.java"

concurve sweep -P threads 1,2,4 --effort quick --max-time 100s -- java -cp . Primes {threads}
check best last --by wall_seconds --right cpus..
