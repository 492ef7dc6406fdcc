// Asks an HTTP server in several sessions at once, for a fixed time:
// client -url URL -sessions N -duration TIME
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8080/", "what to ask for")
	sessions := flag.Int("sessions", 16, "sessions at once")
	duration := flag.Duration("duration", time.Second, "for how long")
	flag.Parse()
	transport := &http.Transport{MaxIdleConnsPerHost: *sessions}
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	var answers int64
	var group sync.WaitGroup
	begin := time.Now()
	for session := 0; session < *sessions; session++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Since(begin) < *duration {
				if err := ask(client, *url); err != nil {
					log.Fatal(err)
				}
				atomic.AddInt64(&answers, 1)
			}
		}()
	}
	group.Wait()
	rate := float64(answers) / time.Since(begin).Seconds()
	fmt.Printf("%.1f answers per second\n", rate)
}

func ask(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
