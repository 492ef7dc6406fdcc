//! How connections begin, and why they do not.

use super::*;
use crate::protocol::mysql::handshake::Method;

#[test]
fn a_log_in_to_mariadb() {
    let mut conversation = conversation(login("secret"));
    let (_, out) = say(&mut *conversation, &mariadb());
    let scramble = b">%;:Qi;*`&<9ICT[LKt)";
    let mut expected = b"\x0e\xa2\x0f\0\0\0\0\x40\x2d".to_vec();
    expected.extend_from_slice(&[0; 23]);
    expected.extend_from_slice(b"me\0\x14");
    expected.extend(Method::Native.answer("secret", scramble));
    expected.extend_from_slice(b"bank\0mysql_native_password\0");
    assert_eq!(out, packet(1, &expected));

    let (_, out) = say(&mut *conversation, &packet(2, &ok(2)));
    for statement in [
        "BEGIN",
        "UPDATE a SET b = ? WHERE c = ?",
        "SELECT b FROM a WHERE c = ?",
    ] {
        let text = [b"\x16", statement.as_bytes()].concat();
        let wanted = packet(0, &text);
        assert!(
            out.windows(wanted.len()).any(|it| it == wanted),
            "{statement}"
        );
    }
}

#[test]
fn the_server_may_ask_for_the_password_in_another_way() {
    let mut conversation = conversation(login("secret"));
    let (_, out) = say(&mut *conversation, &mysql());
    assert!(out.ends_with(b"bank\0caching_sha2_password\0"));
    let request = [b"\xfemysql_native_password\0".as_slice(), SCRAMBLE, b"\0"].concat();
    let (_, out) = say(&mut *conversation, &packet(2, &request));
    assert_eq!(out, packet(3, &Method::Native.answer("secret", SCRAMBLE)));
    say(&mut *conversation, &packet(4, &ok(2)));
    assert_eq!(say(&mut *conversation, &prepared()).0, [Message::Ready]);
}

#[test]
fn caching_sha2_sends_the_password_only_over_a_local_socket() {
    let mut known = conversation(login("secret"));
    say(&mut *known, &mysql());
    let said = packets(2, &[&[1, 3], &ok(2)]);
    let (_, out) = say(&mut *known, &said);
    assert!(out.ends_with(&packet(0, b"\x16COMMIT")));

    let mut remote = conversation(login("secret"));
    say(&mut *remote, &mysql());
    let refused = remote.receive(&packet(2, &[1, 4]), &mut Vec::new());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("by the Unix socket"), "{refused}");

    let local = Login {
        local: true,
        ..login("secret")
    };
    let mut local = conversation(local);
    say(&mut *local, &mysql());
    let (_, out) = say(&mut *local, &packet(2, &[1, 4]));
    assert_eq!(out, packet(3, b"secret\0"));
}

#[test]
fn a_refused_log_in_has_a_remedy() {
    for (said, why) in [
        (
            packet(2, b"\xff\x15\x04#28000Access denied for user"),
            "--password-from",
        ),
        (
            packet(2, b"\xff\x19\x04#42000Unknown database 'bank'"),
            "/DATABASE, or none",
        ),
        (
            packet(2, b"\xff\x57\x0c#HY000insecure transport"),
            "TLS is not supported",
        ),
        (
            packet(2, b"\xfeclient_ed25519\0abc"),
            "mysql_native_password",
        ),
        (
            packet(2, b"\xfemysql_clear_password\0"),
            "method mysql_clear_password",
        ),
    ] {
        let mut conversation = conversation(login("x"));
        say(&mut *conversation, &mariadb());
        let refused = conversation.receive(&said, &mut Vec::new()).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    let mut full = conversation(login("x"));
    let said = packet(0, b"\xff\x10\x04Too many connections");
    let refused = full
        .receive(&said, &mut Vec::new())
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("Too many connections; fewer --sessions"),
        "{refused}"
    );
}

#[test]
fn another_service_is_noticed_by_its_first_bytes() {
    for said in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"-ERR unknown command",
        b"HTTP/1.1 400 Bad",
    ] {
        let refused = conversation(login("")).receive(said, &mut Vec::new());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("is this the right port?"), "{refused}");
    }
}

#[test]
fn a_statement_that_the_server_refuses_is_named() {
    let mut conversation = conversation(login(""));
    say(&mut *conversation, &mariadb());
    say(&mut *conversation, &packet(2, &ok(2)));
    say(&mut *conversation, &packet(1, &ok(2)));
    let missing = packet(1, b"\xff\x7a\x04#42S02Table 'bank.a' doesn't exist");
    let refused = conversation
        .receive(&missing, &mut Vec::new())
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("\"BEGIN\": 1146 Table 'bank.a'"),
        "{refused}"
    );
}

#[test]
fn a_statement_with_unknown_parameters_is_named() {
    let mut conversation = conversation(login(""));
    say(&mut *conversation, &mariadb());
    say(&mut *conversation, &packet(2, &ok(2)));
    say(&mut *conversation, &packet(1, &ok(2)));
    let two = packet(1, &[0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    let refused = conversation.receive(&two, &mut Vec::new()).unwrap_err();
    assert!(refused.to_string().contains("it takes 2 values"));
}

#[test]
fn statements_that_cannot_be_prepared_are_sent_as_text() {
    let mut conversation = conversation(login(""));
    say(&mut *conversation, &mariadb());
    say(&mut *conversation, &packet(2, &ok(2)));
    let begin = packets(1, &[&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]);
    let cannot: Vec<u8> = packet(
        1,
        b"\xff\x0f\x05#HY000not supported in the prepared statement protocol",
    );
    let set = packet(1, &ok(2));
    let rest = &prepared()[set.len() + begin.len()..];
    let said = [&set, &cannot, rest].concat();
    assert_eq!(say(&mut *conversation, &said).0, [Message::Ready]);
    assert_eq!(
        request(&mut *conversation, BEGIN..BEGIN + 1),
        packet(0, b"\x03BEGIN")
    );
}

#[test]
fn variables_are_set_before_anything_is_prepared() {
    let variables = vec![("wait_timeout".to_owned(), "5".to_owned())];
    let login = Login {
        variables,
        ..login("")
    };
    let mut accepted = conversation(login.clone());
    say(&mut *accepted, &mariadb());
    let (_, out) = say(&mut *accepted, &packet(2, &ok(2)));
    let set = b"\x03SET SESSION autocommit = 1, completion_type = 0, wait_timeout = 5";
    assert!(out.starts_with(&packet(0, set)));
    assert_eq!(say(&mut *accepted, &prepared()).0, [Message::Ready]);

    let mut refused = conversation(login);
    say(&mut *refused, &mariadb());
    say(&mut *refused, &packet(2, &ok(2)));
    let unknown = packet(1, b"\xff\xa9\x04#HY000Unknown system variable");
    let error = refused.receive(&unknown, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("1193 Unknown system variable"));
}
