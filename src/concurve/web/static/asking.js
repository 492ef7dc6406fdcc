// Asks the server, and says what went wrong in the page's place for it.

export async function ask(address, content) {
  const options = { headers: { accept: "application/json" } };
  if (content !== undefined) {
    options.method = "POST";
    // No page of another port has it, as it might have the cookie.
    options.headers["x-concurve-key"] = localStorage.getItem("concurve-key") ?? "";
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(content);
  }
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Error("The server does not answer. Try: is concurve web still running?");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) {
    location.reload();
    return new Promise(() => {});
  }
  let text = `The server answered with ${answer.status}.`;
  try {
    const { what, remedy } = await answer.json();
    text = remedy ? `${what}. Try: ${remedy}` : what;
  } catch { /* no reason was given */ }
  const error = new Error(text);
  error.status = answer.status;
  throw error;
}

export function tell(error) {
  const said = document.getElementById("said");
  said.textContent = error ? error.message : "";
  said.hidden = !error;
}

// Does one thing at a time: its button is off meanwhile.
export async function once(button, action) {
  button.disabled = true;
  tell(null);
  try {
    await action();
  } catch (error) {
    tell(error);
  } finally {
    button.disabled = false;
  }
}
