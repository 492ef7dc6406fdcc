// Browsers refuse a Worker to a page that was opened from a file. The search of the documentation
// runs in a hidden frame there. The theme knows the class by its name, IFrameWorker.
if (location.protocol === "file:") {
  window.IFrameWorker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve());
      this.loaded = this.load(url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.onload = resolve;
        script.onerror = reject;
        script.src = new URL(url, location.href);
        this.inside.document.head.append(script);
      });
    }

    postMessage(data) {
      const deliver = () => this.inside.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded.then(deliver);
    }
  };
  window.Worker = window.IFrameWorker;
}
